// SPDX-License-Identifier: Apache-2.0
// What certificates and lists of revoked ones say, and who believes whom. Only certificates.cc
// includes OpenSSL's headers for them. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "net/tls/peer_identity.h"

struct X509_crl_st;
struct x509_st;
struct x509_store_st;

namespace ecpipe {

struct FreeCertificate {
  void operator()(x509_st* certificate) const;
};
struct FreeCrl {
  void operator()(X509_crl_st* crl) const;
};
using CertificatePtr = std::unique_ptr<x509_st, FreeCertificate>;
// Their entries are looked up under a lock of OpenSSL's own.
using Crls = std::vector<std::unique_ptr<X509_crl_st, FreeCrl>>;

// The first of the errors that OpenSSL has queued, which is the cause; the rest are dropped.
std::string QueuedTlsError();

PeerIdentity IdentityOf(const x509_st* certificate);
// When it ends, in Unix seconds; 0: it does not say.
int64_t ExpiryOf(const x509_st* certificate);
// Null: this is no certificate.
CertificatePtr CertificateOfPem(const std::string& pem);
// The first in a file of PEM; null: it has none.
CertificatePtr FirstCertificateIn(const std::string& path);

// The lists in the file `path`, none if that is empty. INVALID_ARGUMENT: it has none, more than
// TlsFacts::kMostLists, or one that no CA in `ca_path` has signed.
absl::StatusOr<Crls> LoadCrls(const std::string& path, const std::string& ca_path);
bool IsRevoked(const Crls& crls, x509_st* certificate);
// Whether a newer one than one of these is due. They are used nevertheless.
bool IsOneDue(const Crls& crls);

// What a process with TLS shows to others, and whom it believes. Certificates are in DER.
struct TlsFacts {
  // So many CAs are told: a private cluster has one, and two while it goes over to another.
  static constexpr size_t kMostTrusted = 32;
  // What is more than these nobody needs: a chain has one or two, and a CA one list.
  static constexpr size_t kMostChain = 10;
  static constexpr size_t kMostLists = 32;

  struct RevocationList {
    std::string issuer;
    int64_t issued = 0;          // Unix seconds, as the next one
    std::optional<int64_t> due;  // when a newer one is promised
    uint32_t revoked = 0;        // certificates on it
  };
  std::vector<std::string> chain;  // its own certificate, then what it sends with it
  // The first CA in the file comes first: daemons with the same one should have the same lists.
  std::vector<std::string> trusted;
  uint32_t trusted_count = 0;  // all of them
  std::vector<RevocationList> lists;
  std::string refused_files;  // why files that have changed are not used; empty: all are in use
};

std::string DerOf(const x509_st* certificate);
// The CAs in an OpenSSL store, into `trusted` and `trusted_count`. `first`: that comes first; null:
// none of them.
void NoteTrusted(x509_store_st* store, const x509_st* first, TlsFacts* facts);
std::vector<TlsFacts::RevocationList> ListsOf(const Crls& crls);

struct CertificateWords {
  PeerIdentity identity;
  std::string issuer;      // "CN=ECPipe CA"
  std::string issuer_key;  // tells issuers of one name apart: "B0:9A:E3:D2"; empty: it is not said
  std::string public_key;  // its own, in DER
  int64_t begin = 0;       // Unix seconds
};
// INVALID_ARGUMENT: this is no certificate.
absl::StatusOr<CertificateWords> ReadCertificate(const std::string& der);

// Which ends of connections the owner of a certificate is.
enum class TlsEnds { kDialling, kBoth };

// Whether who believes the CAs `trusted` accepts this chain, as OpenSSL decides it in a handshake.
// Does not look at dates, at lists of revoked ones or at names. UNAUTHENTICATED: it does not.
absl::Status CheckChain(const std::vector<std::string>& chain,
                        const std::vector<std::string>& trusted, TlsEnds ends);

}  // namespace ecpipe
