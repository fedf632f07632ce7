// The Python module between host code that was compiled here and us: it loads such code, calls its functions, and hands
// each launch to Python. It also gives a tensor without memory its pretended address.
#include <Python.h>

#include <c10/core/StorageImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "presage_configuration.h"
#include "presage_values.h"
#include "presage_runtime.h"

using presage::Function;
using presage::Functions;
using presage::Value;

namespace {

PyObject *reporter = nullptr;
std::vector<std::unique_ptr<Functions>> modules;

thread_local presage_configuration configured;
thread_local const void *const *given_values = nullptr;

[[noreturn]] void raise_python() {
  python_error error;
  error.persist();
  throw error;
}

Value value_of(PyObject *object) {
  Value out;
  if (object == Py_None) return out;
  if (PyBool_Check(object)) return presage::boxed(object == Py_True);
  if (THPVariable_Check(object)) return presage::boxed(THPVariable_Unpack(object));
  if (PyFloat_Check(object)) return presage::boxed(PyFloat_AsDouble(object));
  if (PyUnicode_Check(object)) return presage::boxed(std::string(PyUnicode_AsUTF8(object)));
  if (THPDtype_Check(object)) return presage::boxed(reinterpret_cast<THPDtype *>(object)->scalar_type);
  if (THPDevice_Check(object)) return presage::boxed(reinterpret_cast<THPDevice *>(object)->device);
  if (PyList_Check(object) || PyTuple_Check(object)) {
    out.kind = PyList_Check(object) ? Value::list : Value::tuple;
    PyObject *items = PySequence_Fast(object, "");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); ++i)
      out.items.push_back(value_of(PySequence_Fast_GET_ITEM(items, i)));
    Py_DECREF(items);
    return out;
  }
  if (PyIndex_Check(object)) {
    PyObject *whole = PyNumber_Index(object);
    if (whole == nullptr) raise_python();
    out = presage::boxed(static_cast<int64_t>(PyLong_AsLongLong(whole)));
    Py_DECREF(whole);
    if (PyErr_Occurred()) raise_python();
    return out;
  }
  if (PyNumber_Check(object)) {
    const double number = PyFloat_AsDouble(object);
    if (PyErr_Occurred()) raise_python();
    return presage::boxed(number);
  }
  throw presage::Mismatch();
}

PyObject *object_of(const Value &value) {
  switch (value.kind) {
    case Value::boolean: return PyBool_FromLong(value.whole);
    case Value::integer: return PyLong_FromLongLong(value.whole);
    case Value::real: return PyFloat_FromDouble(value.number);
    case Value::tensor: return THPVariable_Wrap(value.held);
    case Value::text: return PyUnicode_FromStringAndSize(value.chars.data(), value.chars.size());
    case Value::device: return THPDevice_New(at::Device(value.chars));
    case Value::dtype: {
      auto found = reinterpret_cast<PyObject *>(torch::getTHPDtype(static_cast<at::ScalarType>(value.whole)));
      Py_INCREF(found);
      return found;
    }
    case Value::list:
    case Value::tuple: {
      const auto size = static_cast<Py_ssize_t>(value.items.size());
      PyObject *out = value.kind == Value::list ? PyList_New(size) : PyTuple_New(size);
      for (Py_ssize_t i = 0; i < size; ++i) {
        PyObject *item = object_of(value.items[i]);
        if (item == nullptr) raise_python();
        value.kind == Value::list ? PyList_SetItem(out, i, item) : PyTuple_SetItem(out, i, item);
      }
      return out;
    }
    default: Py_RETURN_NONE;
  }
}

// Each parameter's value, from those given in order, by name, and by default.
std::vector<Value> arranged(const Function &function, PyObject *given, PyObject *named) {
  std::vector<std::optional<Value>> found(function.count);
  const auto size = static_cast<size_t>(PyTuple_GET_SIZE(given));
  if (size > function.count) throw presage::Mismatch();
  for (size_t i = 0; i < size; ++i) found[i] = value_of(PyTuple_GET_ITEM(given, i));
  PyObject *key, *value;
  for (Py_ssize_t position = 0; named != nullptr && PyDict_Next(named, &position, &key, &value);) {
    const auto at = std::find(function.names.begin(), function.names.end(), PyUnicode_AsUTF8(key));
    const size_t index = at - function.names.begin();
    if (at == function.names.end() || found[index]) throw presage::Mismatch();
    found[index] = value_of(value);
  }
  for (const auto &[index, otherwise] : function.defaults)
    if (!found[index]) found[index] = otherwise;
  std::vector<Value> out;
  for (const auto &each : found) {
    if (!each) throw presage::Mismatch();
    out.push_back(*each);
  }
  return out;
}

PyObject *call_one(const Function &function, PyObject *given, PyObject *named) {
  const auto arguments = arranged(function, given, named);
  return object_of(function.call(arguments));
}

// call(module, function, arguments, named): of several functions of one name, the first that takes them.
PyObject *call(PyObject *, PyObject *arguments) {
  HANDLE_TH_ERRORS
  Py_ssize_t module;
  const char *name;
  PyObject *given, *named;
  if (!PyArg_ParseTuple(arguments, "nsOO", &module, &name, &given, &named)) return nullptr;
  for (const Function &function : *modules.at(module)) {
    if (function.name != name) continue;
    try {
      return call_one(function, given, named);
    } catch (const presage::Mismatch &) {
    }
  }
  PyErr_Format(PyExc_TypeError, "%s(): incompatible function arguments: %R", name, given);
  return nullptr;
  END_HANDLE_TH_ERRORS
}

// load(path): the module's number, and the names and texts of its functions.
PyObject *load(PyObject *, PyObject *path) {
  HANDLE_TH_ERRORS
  void *library = dlopen(PyUnicode_AsUTF8(path), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    PyErr_SetString(PyExc_ImportError, dlerror());
    return nullptr;
  }
  auto define = reinterpret_cast<void (*)(Functions *)>(dlsym(library, "presage_functions"));
  if (define == nullptr) {
    PyErr_SetString(PyExc_ImportError, "the module binds no functions: it has neither PYBIND11_MODULE nor `functions`");
    return nullptr;
  }
  modules.push_back(std::make_unique<Functions>());
  define(modules.back().get());
  PyObject *functions = PyList_New(0);
  for (const Function &function : *modules.back()) {
    PyObject *entry = Py_BuildValue("ss", function.name.c_str(), function.doc.c_str());
    PyList_Append(functions, entry);
    Py_DECREF(entry);
  }
  return Py_BuildValue("nN", static_cast<Py_ssize_t>(modules.size() - 1), functions);
  END_HANDLE_TH_ERRORS
}

PyObject *set_reporter(PyObject *, PyObject *callable) {
  Py_INCREF(callable);
  Py_XDECREF(reporter);
  reporter = callable;
  Py_RETURN_NONE;
}

// place(tensor, address): where its memory seems to begin.
PyObject *place(PyObject *, PyObject *arguments) {
  HANDLE_TH_ERRORS
  PyObject *object;
  unsigned long long address;
  if (!PyArg_ParseTuple(arguments, "OK", &object, &address)) return nullptr;
  const at::Tensor &tensor = THPVariable_Unpack(object);
  c10::StorageImpl *storage = tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
  if (storage != nullptr) {
    const c10::Device device = storage->device();
    storage->set_data_ptr_noswap(c10::DataPtr(reinterpret_cast<void *>(address), device));
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {
    {"call", call, METH_VARARGS, nullptr},
    {"load", load, METH_O, nullptr},
    {"set_reporter", set_reporter, METH_O, nullptr},
    {"place", place, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "presage_inline_runtime", nullptr, -1, methods};

struct Gil {
  PyGILState_STATE state = PyGILState_Ensure();
  ~Gil() { PyGILState_Release(state); }
};

}  // namespace

namespace presage {

PyObject *report(const char *kind, PyObject *arguments) {
  PyObject *method = PyUnicode_FromString(kind);
  PyObject *found = PyObject_CallFunctionObjArgs(reporter, method, arguments, nullptr);
  Py_DECREF(method);
  Py_XDECREF(arguments);
  if (found == nullptr) raise_python();
  return found;
}

void tell(const char *kind, const char *format, ...) {
  Gil held;
  va_list rest;
  va_start(rest, format);
  PyObject *arguments = Py_VaBuildValue(format, rest);
  va_end(rest);
  Py_DECREF(report(kind, arguments));
}

int64_t ask(const char *kind, const char *format, ...) {
  Gil held;
  va_list rest;
  va_start(rest, format);
  PyObject *arguments = Py_VaBuildValue(format, rest);
  va_end(rest);
  PyObject *answer = report(kind, arguments);
  const int64_t number = PyLong_AsLongLong(answer);
  Py_DECREF(answer);
  return number;
}

}  // namespace presage

extern "C" void presage_configure(const presage_configuration *next) { configured = *next; }

extern "C" void presage_launch(const char *unit, const char *name, int count, const void *const *values,
                               const size_t *sizes) {
  Gil held;
  if (given_values != nullptr) values = std::exchange(given_values, nullptr);
  const presage_configuration c = configured;
  PyObject *parameters = PyTuple_New(count);
  for (int i = 0; i < count; ++i)
    PyTuple_SET_ITEM(parameters, i,
                     PyBytes_FromStringAndSize(static_cast<const char *>(values[i]), static_cast<Py_ssize_t>(sizes[i])));
  PyObject *arguments = Py_BuildValue(
      "ssN(III)(III)KK(III)NN", unit, name, parameters, c.grid.x, c.grid.y, c.grid.z, c.block.x, c.block.y, c.block.z,
      static_cast<unsigned long long>(c.shared), reinterpret_cast<unsigned long long>(c.stream), c.cluster.x,
      c.cluster.y, c.cluster.z, PyBool_FromLong(c.cooperative), PyBool_FromLong(c.overlapping));
  Py_DECREF(presage::report("launch", arguments));
}

extern "C" void presage_launch_at(const void *stub, const void *const *values) {
  static const void *none = nullptr;
  given_values = values == nullptr ? &none : values;
  // A stub only passes its parameters' addresses on, and presage_launch uses `values` for them. So it may be called
  // without parameters, which are not known here.
  reinterpret_cast<void (*)()>(const_cast<void *>(stub))();
  given_values = nullptr;
}

extern "C" cudaError_t presage_symbol_copy(const char *unit, const char *symbol, const void *source, size_t size,
                                           size_t offset, cudaStream_t stream) {
  presage::tell("symbol", "(ssKKKK)", unit, symbol, reinterpret_cast<unsigned long long>(source),
                static_cast<unsigned long long>(size), static_cast<unsigned long long>(offset),
                reinterpret_cast<unsigned long long>(stream));
  return cudaSuccess;
}

PyMODINIT_FUNC PyInit_presage_inline_runtime() { return PyModule_Create(&definition); }
