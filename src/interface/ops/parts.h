// Parts that many schemas share: attributes, ports and conditions, each declared once.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "interface/type_rules.h"

namespace lamina::parts {

// ---- checks of attribute values: "" for a legal value, else what is allowed
std::string positive_finite(const Attribute& value);
std::string finite(const Attribute& value);
std::string not_nan(const Attribute& value);
std::string at_least_one(const Attribute& value);  // applies to an s64, or to every entry of an s64[]
std::string not_negative(const Attribute& value);  // applies to every entry of an s64[]

// ---- attributes
AttributeSpec epsilon(bool required = false);  // default 1e-5 unless required
AttributeSpec begin_norm_axis();
AttributeSpec flag(std::string name, bool default_value, std::string meaning);
AttributeSpec required_flag(std::string name, std::string meaning);
AttributeSpec choice(std::string name, std::string default_value, std::vector<std::string> allowed, std::string meaning);
AttributeSpec axis(std::optional<int64_t> default_value);  // required if there is no default
AttributeSpec data_format();
AttributeSpec auto_broadcast();
AttributeSpec use_dst();
AttributeSpec required_number(std::string name, std::string meaning);
AttributeSpec required_list(std::string name, std::string (*check)(const Attribute&), std::string meaning);
AttributeSpec default_list(std::string name, int64_t entry, std::string (*check)(const Attribute&), std::string meaning);

// ---- conditions
Condition flag_is(std::string name, bool value);
Condition both(Condition a, Condition b);
Condition text_is(std::string name, std::string value);

// ---- ports
PortSpec port(std::string name, std::string type, std::string meaning = {});
PortSpec optional_port(std::string name, std::string type, std::string meaning = {});
PortSpec port_when(std::string name, std::string type, Condition condition, std::string meaning = {});
PortSpec optional_when(std::string name, std::string type, Condition condition, std::string meaning = {});
PortSpec as(PortRole role, PortSpec port);

// ---- domains of inputs
Domain suits(double low, double high);  // where the op's behaviour is visible
Domain needs(double low, double high);  // outside, the op has no result, or a meaningless one
Domain needs(Domain::Form form, double low = -1, double high = 1);
DomainRule always(Domain domain);  // for all attributes
// For an input that is the forward op's output or, depending on attribute use_dst, its input.
DomainRule forward(std::string text, std::function<Domain(const OpView&)> of_dst, std::function<Domain(const OpView&)> of_src);
bool is_scalar(const LogicalTensor& tensor);  // one element, of any rank
PortSpec within(DomainRule rule, PortSpec port);
PortSpec within(Domain domain, PortSpec port);

}  // namespace lamina::parts
