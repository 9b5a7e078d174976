// SPDX-License-Identifier: Apache-2.0
#include "rpc/convert/scheme_proto.h"

namespace ecpipe {

void SchemesToProto(const std::vector<SchemeInfo>& schemes, v1::ListSchemesResponse* proto) {
  for (const SchemeInfo& scheme : schemes) {
    v1::ListSchemesResponse::Scheme* added = proto->add_schemes();
    added->set_name(scheme.name);
    added->set_kind(scheme.kind);
    added->set_help(scheme.help);
    added->set_timeslots(scheme.timeslots);
    added->set_source(scheme.source);
    added->set_most_failed(scheme.most_failed);
    for (const std::string& what : scheme.looks_at) added->add_looks_at(what);
  }
}

std::vector<SchemeInfo> SchemesFromProto(const v1::ListSchemesResponse& proto) {
  std::vector<SchemeInfo> schemes;
  for (const v1::ListSchemesResponse::Scheme& scheme : proto.schemes()) {
    schemes.push_back({scheme.name(),
                       scheme.kind(),
                       scheme.help(),
                       scheme.timeslots(),
                       scheme.source(),
                       scheme.most_failed(),
                       {scheme.looks_at().begin(), scheme.looks_at().end()}});
  }
  return schemes;
}

}  // namespace ecpipe
