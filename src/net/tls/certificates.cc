// SPDX-License-Identifier: Apache-2.0
#include "net/tls/certificates.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "net/tls/free_with.h"

namespace ecpipe {
namespace {

void FreeStack(STACK_OF(X509) * stack) { sk_X509_free(stack); }
using BioPtr = std::unique_ptr<BIO, FreeWith<BIO_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreeWith<GENERAL_NAMES_free>>;
using StorePtr = std::unique_ptr<X509_STORE, FreeWith<X509_STORE_free>>;
using VerifyPtr = std::unique_ptr<X509_STORE_CTX, FreeWith<X509_STORE_CTX_free>>;
using StackPtr = std::unique_ptr<STACK_OF(X509), FreeWith<FreeStack>>;

int64_t UnixSeconds(const ASN1_TIME* time) {
  std::tm utc{};
  return time != nullptr && ASN1_TIME_to_tm(time, &utc) == 1 ? ::timegm(&utc) : 0;
}

std::string NameText(const X509_NAME* name) {
  const BioPtr text(BIO_new(BIO_s_mem()));
  if (text == nullptr) throw std::bad_alloc();
  X509_NAME_print_ex(text.get(), name, 0, XN_FLAG_RFC2253);
  const char* bytes = nullptr;
  const long count = BIO_get_mem_data(text.get(), &bytes);
  return {bytes, static_cast<size_t>(count)};
}

void FreeText(char* text) { OPENSSL_free(text); }

std::string IssuerKeyOf(X509* certificate) {
  constexpr int kShown = 4;  // bytes, of which `openssl x509 -text` shows all
  const ASN1_OCTET_STRING* const id = X509_get0_authority_key_id(certificate);
  if (id == nullptr) return "";
  const std::unique_ptr<char, FreeWith<FreeText>> text(
      OPENSSL_buf2hexstr(ASN1_STRING_get0_data(id), std::min(ASN1_STRING_length(id), kShown)));
  return text == nullptr ? "" : text.get();
}

std::string PublicKeyOf(const X509* certificate) {
  X509_PUBKEY* const key = X509_get_X509_PUBKEY(certificate);
  std::string der(static_cast<size_t>(std::max(i2d_X509_PUBKEY(key, nullptr), 0)), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(der.data());
  i2d_X509_PUBKEY(key, &bytes);
  return der;
}

CertificatePtr CertificateOfDer(const std::string& der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  CertificatePtr certificate(d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
  ERR_clear_error();
  return certificate;
}

absl::Status CheckAsPeer(X509_STORE* store, X509* certificate, STACK_OF(X509) * others,
                         const char* purpose) {
  const VerifyPtr verify(X509_STORE_CTX_new());
  if (verify == nullptr || X509_STORE_CTX_init(verify.get(), store, certificate, others) != 1) {
    throw std::bad_alloc();
  }
  X509_STORE_CTX_set_default(verify.get(), purpose);
  X509_STORE_CTX_set_flags(verify.get(), X509_V_FLAG_NO_CHECK_TIME);
  const bool good = X509_verify_cert(verify.get()) == 1;
  ERR_clear_error();
  if (good) return absl::OkStatus();
  return absl::UnauthenticatedError(
      X509_verify_cert_error_string(X509_STORE_CTX_get_error(verify.get())));
}

// All in a file of PEM.
std::vector<CertificatePtr> CertificatesIn(const std::string& path) {
  std::vector<CertificatePtr> certificates;
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  while (file != nullptr) {
    CertificatePtr next(PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
    if (next == nullptr) break;
    certificates.push_back(std::move(next));
  }
  ERR_clear_error();
  return certificates;
}

bool IsOfOneOf(const std::vector<CertificatePtr>& cas, X509_CRL* crl) {
  const bool found = std::any_of(cas.begin(), cas.end(), [crl](const CertificatePtr& ca) {
    return X509_CRL_verify(crl, X509_get0_pubkey(ca.get())) == 1;
  });
  ERR_clear_error();  // of those that have not signed it
  return found;
}

}  // namespace

void FreeCertificate::operator()(x509_st* certificate) const { X509_free(certificate); }
void FreeCrl::operator()(X509_crl_st* crl) const { X509_CRL_free(crl); }

std::string QueuedTlsError() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(error)) return std::strerror(ERR_GET_REASON(error));
  const char* reason = ERR_reason_error_string(error);
  return reason == nullptr ? "unknown error" : reason;
}

PeerIdentity IdentityOf(const x509_st* certificate) {
  std::vector<std::string> uris;
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_STRING* text = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                      static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return IdentityFromUris(uris);
}

int64_t ExpiryOf(const x509_st* certificate) {
  return UnixSeconds(X509_get0_notAfter(certificate));
}

CertificatePtr CertificateOfPem(const std::string& pem) {
  const BioPtr text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  CertificatePtr certificate(
      text == nullptr ? nullptr : PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

CertificatePtr FirstCertificateIn(const std::string& path) {
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  return CertificatePtr(file == nullptr ? nullptr
                                        : PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr));
}

absl::StatusOr<Crls> LoadCrls(const std::string& path, const std::string& ca_path) {
  Crls crls;
  if (path.empty()) return crls;
  const std::vector<CertificatePtr> cas = CertificatesIn(ca_path);
  const BioPtr file(BIO_new_file(path.c_str(), "r"));
  while (file != nullptr) {
    Crls::value_type crl(PEM_read_bio_X509_CRL(file.get(), nullptr, nullptr, nullptr));
    if (crl == nullptr) break;
    if (crls.size() >= TlsFacts::kMostLists) {
      return absl::InvalidArgumentError("TLS: " + path + " has more than " +
                                        std::to_string(TlsFacts::kMostLists) +
                                        " lists of revoked certificates; the newest is enough");
    }
    if (!IsOfOneOf(cas, crl.get())) {
      return absl::InvalidArgumentError("TLS: a list of revoked certificates in " + path +
                                        " is signed by none of the CAs in " + ca_path);
    }
    crls.push_back(std::move(crl));
  }
  if (!crls.empty() && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
    ERR_clear_error();  // the end of the file
    return crls;
  }
  return absl::InvalidArgumentError("TLS: cannot use the list of revoked certificates " + path +
                                    ": " + QueuedTlsError());
}

bool IsRevoked(const Crls& crls, x509_st* certificate) {
  for (const auto& crl : crls) {
    X509_REVOKED* entry = nullptr;
    const bool same_issuer =
        X509_NAME_cmp(X509_CRL_get_issuer(crl.get()), X509_get_issuer_name(certificate)) == 0;
    if (same_issuer && X509_CRL_get0_by_cert(crl.get(), &entry, certificate) == 1) {
      return true;
    }
  }
  return false;
}

bool IsOneDue(const Crls& crls) {
  return std::any_of(crls.begin(), crls.end(), [](const auto& crl) {
    const ASN1_TIME* const next = X509_CRL_get0_nextUpdate(crl.get());
    return next != nullptr && X509_cmp_current_time(next) < 0;
  });
}

std::string DerOf(const x509_st* certificate) {
  std::string der(static_cast<size_t>(std::max(i2d_X509(certificate, nullptr), 0)), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(der.data());
  i2d_X509(certificate, &bytes);
  return der;
}

void NoteTrusted(x509_store_st* store, const x509_st* first, TlsFacts* facts) {
  if (first != nullptr) facts->trusted.push_back(DerOf(first));
  const STACK_OF(X509_OBJECT)* trusted = X509_STORE_get0_objects(store);
  for (int i = 0; i < sk_X509_OBJECT_num(trusted); ++i) {
    const X509* ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
    if (ca == nullptr) continue;
    ++facts->trusted_count;
    if (first != nullptr && X509_cmp(ca, first) == 0) continue;
    if (facts->trusted.size() < TlsFacts::kMostTrusted) facts->trusted.push_back(DerOf(ca));
  }
}

std::vector<TlsFacts::RevocationList> ListsOf(const Crls& crls) {
  std::vector<TlsFacts::RevocationList> lists;
  for (const auto& crl : crls) {
    TlsFacts::RevocationList& list = lists.emplace_back();
    list.issuer = NameText(X509_CRL_get_issuer(crl.get()));
    list.issued = UnixSeconds(X509_CRL_get0_lastUpdate(crl.get()));
    const ASN1_TIME* const due = X509_CRL_get0_nextUpdate(crl.get());
    if (due != nullptr) list.due = UnixSeconds(due);
    const STACK_OF(X509_REVOKED)* const revoked = X509_CRL_get_REVOKED(crl.get());
    if (revoked != nullptr) list.revoked = static_cast<uint32_t>(sk_X509_REVOKED_num(revoked));
  }
  return lists;
}

absl::StatusOr<CertificateWords> ReadCertificate(const std::string& der) {
  const CertificatePtr certificate = CertificateOfDer(der);
  if (certificate == nullptr) return absl::InvalidArgumentError("this is no certificate");
  return CertificateWords{.identity = IdentityOf(certificate.get()),
                          .issuer = NameText(X509_get_issuer_name(certificate.get())),
                          .issuer_key = IssuerKeyOf(certificate.get()),
                          .public_key = PublicKeyOf(certificate.get()),
                          .begin = UnixSeconds(X509_get0_notBefore(certificate.get()))};
}

absl::Status CheckChain(const std::vector<std::string>& chain,
                        const std::vector<std::string>& trusted, TlsEnds ends) {
  std::vector<CertificatePtr> shown;
  const StackPtr others(sk_X509_new_null());
  for (const std::string& der : chain) {
    shown.push_back(CertificateOfDer(der));
    if (shown.back() == nullptr) return absl::UnauthenticatedError("it shows no certificate");
    if (shown.size() > 1) sk_X509_push(others.get(), shown.back().get());
  }
  if (shown.empty()) return absl::UnauthenticatedError("it shows no certificate");
  const StorePtr store(X509_STORE_new());
  if (others == nullptr || store == nullptr) throw std::bad_alloc();
  for (const std::string& der : trusted) {
    const CertificatePtr ca = CertificateOfDer(der);
    if (ca != nullptr) X509_STORE_add_cert(store.get(), ca.get());
  }
  X509* const own = shown.front().get();
  const absl::Status dials = CheckAsPeer(store.get(), own, others.get(), "ssl_client");
  if (!dials.ok() || ends == TlsEnds::kDialling) return dials;
  return CheckAsPeer(store.get(), own, others.get(), "ssl_server");
}

}  // namespace ecpipe
