// A std::variant that stays valid when copying it runs out of memory.
#pragma once

#include <type_traits>
#include <utility>
#include <variant>

namespace lamina {

// libstdc++ (at least 12 to 15) treats a variant of only strings, vectors and numbers as never valueless. When copying such a
// variant throws, it then destroys a value that was never constructed. This class copies first and then moves, which does not
// throw.
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
