// Values that pass between Python and host code, and functions of them.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace presage {

struct Value {
  enum Kind { none, boolean, integer, real, tensor, text, list, tuple, dtype, device };
  Kind kind = none;
  int64_t whole = 0;
  double number = 0;
  at::Tensor held;
  std::string chars;
  std::vector<Value> items;
};

struct Mismatch {};  // which is a TypeError in Python

template <class T, class = void> struct Box;

template <class T> using Plain = std::remove_cv_t<std::remove_reference_t<T>>;
template <class T> Value boxed(const T &from) { return Box<Plain<T>>::box(from); }
template <class T> Plain<T> unboxed(const Value &from) { return Box<Plain<T>>::unbox(from); }

template <> struct Box<bool> {
  static Value box(bool from) { Value out; out.kind = Value::boolean; out.whole = from; return out; }
  static bool unbox(const Value &from) {
    if (from.kind != Value::boolean && from.kind != Value::integer) throw Mismatch();
    return from.whole != 0;
  }
};
template <class T> struct Box<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>>> {
  static Value box(T from) { Value out; out.kind = Value::integer; out.whole = static_cast<int64_t>(from); return out; }
  static T unbox(const Value &from) {
    if (from.kind != Value::integer && from.kind != Value::boolean) throw Mismatch();
    if (static_cast<int64_t>(static_cast<T>(from.whole)) != from.whole) throw Mismatch();
    return static_cast<T>(from.whole);
  }
};
template <class T> struct Box<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static Value box(T from) { Value out; out.kind = Value::real; out.number = from; return out; }
  static T unbox(const Value &from) {
    if (from.kind == Value::real) return static_cast<T>(from.number);
    if (from.kind == Value::integer || from.kind == Value::boolean) return static_cast<T>(from.whole);
    throw Mismatch();
  }
};
template <> struct Box<at::Tensor> {
  static Value box(const at::Tensor &from) { Value out; out.kind = Value::tensor; out.held = from; return out; }
  static at::Tensor unbox(const Value &from) {
    if (from.kind != Value::tensor) throw Mismatch();
    return from.held;
  }
};
template <> struct Box<std::string> {
  static Value box(const std::string &from) { Value out; out.kind = Value::text; out.chars = from; return out; }
  static std::string unbox(const Value &from) {
    if (from.kind != Value::text) throw Mismatch();
    return from.chars;
  }
};
template <> struct Box<at::Scalar> {
  static Value box(const at::Scalar &from) {
    return from.isIntegral(true) ? Box<int64_t>::box(from.toLong()) : Box<double>::box(from.toDouble());
  }
  static at::Scalar unbox(const Value &from) {
    if (from.kind == Value::real) return at::Scalar(from.number);
    return at::Scalar(Box<int64_t>::unbox(from));
  }
};
template <> struct Box<at::ScalarType> {
  static Value box(at::ScalarType from) {
    Value out; out.kind = Value::dtype; out.whole = static_cast<int64_t>(from); return out;
  }
  static at::ScalarType unbox(const Value &from) {
    if (from.kind != Value::dtype) throw Mismatch();
    return static_cast<at::ScalarType>(from.whole);
  }
};
template <> struct Box<at::Device> {
  static Value box(const at::Device &from) { Value out; out.kind = Value::device; out.chars = from.str(); return out; }
  static at::Device unbox(const Value &from) {
    if (from.kind != Value::device && from.kind != Value::text) throw Mismatch();
    return at::Device(from.chars);
  }
};
template <class T> struct Box<std::optional<T>> {
  static Value box(const std::optional<T> &from) { return from ? boxed(*from) : Value(); }
  static std::optional<T> unbox(const Value &from) {
    if (from.kind == Value::none) return std::nullopt;
    return unboxed<T>(from);
  }
};
template <class T> struct Box<std::vector<T>> {
  static Value box(const std::vector<T> &from) {
    Value out; out.kind = Value::list;
    for (const T &each : from) out.items.push_back(boxed<T>(each));
    return out;
  }
  static std::vector<T> unbox(const Value &from) {
    if (from.kind != Value::list && from.kind != Value::tuple) throw Mismatch();
    std::vector<T> out;
    for (const Value &each : from.items) out.push_back(unboxed<T>(each));
    return out;
  }
};
// What refers to a list's items refers to this one's.
template <class T> struct Referred {
  std::vector<T> items;
  operator c10::ArrayRef<T>() const { return items; }
};
template <class T> struct Box<c10::ArrayRef<T>> {
  static Value box(c10::ArrayRef<T> from) { return Box<std::vector<T>>::box(from.vec()); }
  static Referred<T> unbox(const Value &from) { return {Box<std::vector<T>>::unbox(from)}; }
};
template <class... T> struct Box<std::tuple<T...>> {
  static Value box(const std::tuple<T...> &from) {
    Value out; out.kind = Value::tuple;
    std::apply([&](const auto &...each) { (out.items.push_back(boxed(each)), ...); }, from);
    return out;
  }
  static std::tuple<T...> unbox(const Value &from) {
    if (from.items.size() != sizeof...(T)) throw Mismatch();
    return [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<T...>{unboxed<T>(from.items[I])...};
    }(std::index_sequence_for<T...>());
  }
};
template <class A, class B> struct Box<std::pair<A, B>> {
  static Value box(const std::pair<A, B> &from) { return boxed(std::tuple<A, B>(from.first, from.second)); }
  static std::pair<A, B> unbox(const Value &from) {
    auto [a, b] = unboxed<std::tuple<A, B>>(from);
    return {a, b};
  }
};

struct Function {
  std::string name, doc;
  size_t count = 0;
  std::vector<std::string> names;
  std::vector<std::pair<size_t, Value>> defaults;
  std::function<Value(const std::vector<Value> &)> call;
};
using Functions = std::vector<Function>;

template <class T> auto argument(const Value &from) { return Box<Plain<T>>::unbox(from); }

template <class Result, class... T, class Callee>
auto caller(Callee function) {
  return [function](const std::vector<Value> &given) mutable -> Value {
    auto held = [&]<size_t... I>(std::index_sequence<I...>) {
      return std::tuple<decltype(argument<T>(given[I]))...>{argument<T>(given[I])...};
    }(std::index_sequence_for<T...>());
    return std::apply([&](auto &...each) -> Value {
      if constexpr (std::is_void_v<Result>) {
        function(each...);
        return Value();
      } else {
        return boxed<Plain<Result>>(function(each...));
      }
    }, held);
  };
}

template <class Result, class... T> void bind(Function &out, Result (*function)(T...)) {
  out.count = sizeof...(T);
  out.call = caller<Result, T...>(function);
}
template <class Callee, class Result, class... T>
void bind_member(Function &out, Callee function, Result (Callee::*)(T...) const) {
  out.count = sizeof...(T);
  out.call = caller<Result, T...>(function);
}
template <class Callee> auto bind(Function &out, Callee function) -> decltype(&Callee::operator(), void()) {
  bind_member(out, function, &Callee::operator());
}

}  // namespace presage
