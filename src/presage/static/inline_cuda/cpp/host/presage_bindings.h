// Bindings: as much of pybind11 as functions of tensors and numbers need. The real one takes longer to compile than all
// else; a source that uses more of it is compiled with the real one.
#pragma once
#include "presage_values.h"

namespace pybind11 {

enum class return_value_policy { automatic, take_ownership, copy, move, reference, reference_internal };
struct gil_scoped_release {};
struct gil_scoped_acquire {};
template <class... T> struct call_guard {};
struct none {};
struct kw_only {};

struct arg_v {
  std::string name;
  presage::Value value;
};
struct arg {
  explicit arg(const char *named) : name(named) {}
  template <class T> arg_v operator=(const T &value) const {
    if constexpr (std::is_same_v<T, none> || std::is_same_v<T, std::nullopt_t>) return {name, presage::Value()};
    else if constexpr (std::is_convertible_v<T, std::string>) return {name, presage::boxed(std::string(value))};
    else return {name, presage::boxed(value)};
  }
  arg &noconvert(bool = true) { return *this; }
  std::string name;
};
namespace literals {
inline arg operator""_a(const char *name, size_t) { return arg(name); }
}  // namespace literals

class module_ {
 public:
  explicit module_(presage::Functions *out) : out_(out) {}
  template <class Callee, class... Extra> module_ &def(const char *name, Callee function, const Extra &...extra) {
    presage::Function made;
    made.name = name;
    presage::bind(made, function);
    (add(made, extra), ...);
    out_->push_back(std::move(made));
    return *this;
  }
  std::string &doc() { return doc_; }

 private:
  static void add(presage::Function &made, const char *doc) { made.doc = doc; }
  static void add(presage::Function &made, const arg &named) { made.names.push_back(named.name); }
  static void add(presage::Function &made, const arg_v &named) {
    made.defaults.emplace_back(made.names.size(), named.value);
    made.names.push_back(named.name);
  }
  template <class Other> static void add(presage::Function &, const Other &) {}
  presage::Functions *out_;
  std::string doc_;
};
using module = module_;

}  // namespace pybind11

namespace py = pybind11;

#define PYBIND11_MODULE(name, variable)                                  \
  static void presage_define(::pybind11::module_ &variable);             \
  extern "C" void presage_functions(::presage::Functions *out) {         \
    ::pybind11::module_ variable(out);                                   \
    presage_define(variable);                                            \
  }                                                                      \
  static void presage_define([[maybe_unused]] ::pybind11::module_ &variable)
