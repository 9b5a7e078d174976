// SPDX-License-Identifier: Apache-2.0
// Certificates made by deploy/make-certs.sh, in a directory that goes with the object.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.h"
#include "net/tls/tls.h"

namespace ecpipe {

class TestCertificates {
 public:
  // `names`: the script's arguments, "node-1=helper ann=operator".
  explicit TestCertificates(const std::string& names) {
    char path[] = "/tmp/ecpipe-certs-XXXXXX";
    ECPIPE_CHECK(::mkdtemp(path) != nullptr);
    directory_ = path;
    Make(names);
  }
  ~TestCertificates() { std::filesystem::remove_all(directory_); }
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  // One set for all tests that only use them.
  static const TestCertificates& Shared() {
    static const TestCertificates certificates(
        "the-sender=helper the-receiver=requestor node-2=helper head=coordinator ann=operator "
        "nobody=coordinator");
    return certificates;
  }

  // More of them, or new ones for names that are there; `options` as the script's.
  void Make(const std::string& names, const std::string& options = "") const {
    std::string command = ECPIPE_MAKE_CERTS " ";
    command += options + " " + directory_ + " " + names;
    ECPIPE_CHECK(std::system(command.c_str()) == 0);
  }

  // They are on the list of Files() with `crl` from then on.
  void Revoke(const std::string& names) const { Make(names, "--revoke"); }

  std::string Path(const std::string& file) const { return directory_ + "/" + file; }
  TlsFiles Files(const std::string& name) const {
    return {Path("ca.pem"), Path(name + ".pem"), Path(name + ".key")};
  }
  std::shared_ptr<TlsContext> Context(const std::string& name) const {
    return TlsContext::Create(Files(name)).value();
  }

 private:
  std::string directory_;
};

}  // namespace ecpipe
