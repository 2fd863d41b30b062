// std::variant whose copying may run out of memory.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace lamina {

// libstdc++ (12 to 15 at least) takes a variant of nothing but strings, vectors and numbers for one that always has a value,
// and when copying one throws, it destroys the value that never came to be. Here a copy is made first, and then moved, which
// does not throw.
template <typename... Types>
class Variant : public std::variant<Types...> {
  using Base = std::variant<Types...>;

 public:
  using Base::Base;
  Variant() = default;
  Variant(const Variant& other) : Base(copy_of(other)) {}
  Variant(Variant&&) = default;
  Variant& operator=(const Variant& other) {
    Base::operator=(copy_of(other));
    return *this;
  }
  Variant& operator=(Variant&&) = default;
  using Base::operator=;

 private:
  static Base copy_of(const Base& other) {
    return std::visit(
        [](const auto& held) {
          auto copy = held;
          return Base(std::in_place_type<std::remove_cvref_t<decltype(held)>>, std::move(copy));
        },
        other);
  }
};

}  // namespace lamina
