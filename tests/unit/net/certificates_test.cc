// SPDX-License-Identifier: Apache-2.0
#include "net/tls/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "unit/net/test_certificates.h"

namespace ecpipe::certificates_test {
namespace {

using ::testing::HasSubstr;

TlsFacts FactsOf(const TlsFiles& files) { return TlsContext::Create(files).value()->Facts(); }

absl::Status Accepts(const TlsFacts& judge, const TlsFacts& peer, TlsEnds ends = TlsEnds::kBoth) {
  return CheckChain(peer.chain, judge.trusted, ends);
}

TEST(Certificates, OfOneCaAreAcceptedByEachOther) {
  const TestCertificates& shared = TestCertificates::Shared();
  const TlsFacts head = FactsOf(shared.Files("head"));
  const TlsFacts node = FactsOf(shared.Files("node-2"));
  EXPECT_TRUE(Accepts(head, node).ok());
  EXPECT_TRUE(Accepts(node, head).ok());
  EXPECT_EQ(head.trusted_count, 1u);
  EXPECT_TRUE(head.lists.empty());
  EXPECT_EQ(head.refused_files, "");
  const CertificateWords words = ReadCertificate(node.chain.front()).value();
  EXPECT_EQ(words.identity.node, "node-2");
  EXPECT_EQ(words.identity.roles, std::set<Role>{Role::kHelper});
  EXPECT_EQ(words.issuer, "CN=ECPipe CA");
  EXPECT_THAT(words.issuer_key, ::testing::MatchesRegex("[0-9A-F:]{11}"));
  EXPECT_NE(words.public_key, ReadCertificate(node.trusted.front())->public_key);
  EXPECT_GT(words.begin, 1'700'000'000);
}

TEST(Certificates, OfAnotherCaAreNotAccepted) {
  const TestCertificates foreign("node-2=helper");
  const TlsFacts own = FactsOf(TestCertificates::Shared().Files("head"));
  const TlsFacts other = FactsOf(foreign.Files("node-2"));
  EXPECT_TRUE(absl::IsUnauthenticated(Accepts(own, other)));
  EXPECT_TRUE(absl::IsUnauthenticated(Accepts(other, own)));
  TlsFacts both = own;
  both.trusted.push_back(other.trusted.front());
  EXPECT_TRUE(Accepts(both, other).ok()) << Accepts(both, other);
  EXPECT_TRUE(Accepts(both, own).ok()) << Accepts(both, own);
}

// While a CA is replaced: a process may believe one and show a certificate of the other.
TEST(Certificates, AFileOfCasWithoutTheIssuerOfTheOwnCertificate) {
  const TestCertificates foreign("node-2=helper");
  TlsFiles files = TestCertificates::Shared().Files("node-2");
  files.ca = foreign.Path("ca.pem");
  const TlsFacts facts = FactsOf(files);
  EXPECT_FALSE(Accepts(facts, facts).ok());
}

// The certificate of a CA is fit for no end of a connection.
TEST(Certificates, WhatIsNoCertificateIsNotAccepted) {
  const TlsFacts head = FactsOf(TestCertificates::Shared().Files("head"));
  EXPECT_FALSE(CheckChain({}, head.trusted, TlsEnds::kBoth).ok());
  EXPECT_FALSE(CheckChain({"no DER"}, head.trusted, TlsEnds::kBoth).ok());
  EXPECT_FALSE(CheckChain(head.chain, {"no DER"}, TlsEnds::kBoth).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCertificate("no DER").status()));
}

TEST(Certificates, DatesAreNotLookedAt) {
  const TestCertificates mine("fresh=helper");
  mine.Make("old=helper", "--days -1");
  EXPECT_TRUE(Accepts(FactsOf(mine.Files("fresh")), FactsOf(mine.Files("old"))).ok());
}

TEST(Certificates, OnlyTheFirstCasAreToldAndAllAreCounted) {
  const TestCertificates mine("node=helper");
  std::string all;
  for (size_t i = 0; i <= TlsFacts::kMostTrusted; ++i) {
    const TestCertificates other("x=helper");
    std::ifstream file(other.Path("ca.pem"));
    all.append(std::istreambuf_iterator<char>(file), {});
  }
  TlsFiles files = mine.Files("node");
  files.ca = mine.Path("many.pem");
  std::ofstream(files.ca) << all;
  const TlsFacts facts = FactsOf(files);
  EXPECT_EQ(facts.trusted.size(), TlsFacts::kMostTrusted);
  EXPECT_EQ(facts.trusted_count, TlsFacts::kMostTrusted + 1);
}

// OpenSSL keeps them in an order of its own, by their names.
TEST(Certificates, TheFirstCaInTheFileIsToldFirst) {
  const TestCertificates mine("node=helper");
  const std::string own = FactsOf(mine.Files("node")).trusted.at(0);
  const auto text = [&](const std::string& file) {
    std::ifstream stream(mine.Path(file));
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  std::string all = text("ca.pem");
  for (const std::string name : {"A", "B"}) {
    const std::string command = "openssl req -x509 -new -key " + mine.Path("ca.key") +
                                " -subj /CN=" + name + " -out " + mine.Path("other.pem");
    ASSERT_EQ(std::system(command.c_str()), 0);
    all += text("other.pem");
  }
  TlsFiles files = mine.Files("node");
  files.ca = mine.Path("all.pem");
  std::ofstream(files.ca) << all;
  const TlsFacts facts = FactsOf(files);
  EXPECT_EQ(facts.trusted_count, 3u);
  ASSERT_EQ(facts.trusted.size(), 3u);
  EXPECT_EQ(facts.trusted[0], own);
  EXPECT_EQ(std::set<std::string>(facts.trusted.begin(), facts.trusted.end()).size(), 3u);
}

TEST(Certificates, ListsAreDescribed) {
  const TestCertificates mine("node=helper stolen=requestor lost=requestor");
  mine.Revoke("stolen lost");
  TlsFiles files = mine.Files("node");
  files.crl = mine.Path("crl.pem");
  const TlsFacts facts = FactsOf(files);
  ASSERT_EQ(facts.lists.size(), 1u);
  EXPECT_EQ(facts.lists[0].issuer, "CN=ECPipe CA");
  EXPECT_EQ(facts.lists[0].revoked, 2u);
  EXPECT_GT(facts.lists[0].due.value(), facts.lists[0].issued);
}

// While a CA is replaced, certificates of both are in use, and each CA lists its own.
TEST(Certificates, ListsOfEachCaInTheFileAreTaken) {
  const TestCertificates mine("node=helper stolen=requestor");
  const TestCertificates next("node=helper lost=requestor");
  mine.Revoke("stolen");
  next.Revoke("lost");
  const auto text = [](const std::string& path) {
    std::ifstream stream(path);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  TlsFiles files = mine.Files("node");
  files.ca = mine.Path("both.pem");
  std::ofstream(files.ca) << text(mine.Path("ca.pem")) << text(next.Path("ca.pem"));
  files.crl = mine.Path("lists.pem");
  std::ofstream(files.crl) << text(next.Path("crl.pem")) << text(mine.Path("crl.pem"));
  const auto context = TlsContext::Create(files);
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ((*context)->Facts().lists.size(), 2u);
  for (const auto& [set, name, revoked] :
       {std::tuple(&mine, "stolen", true), std::tuple(&next, "lost", true),
        std::tuple(&mine, "node", false), std::tuple(&next, "node", false)}) {
    EXPECT_EQ((*context)->Revoked(text(set->Path(std::string(name) + ".pem"))), revoked) << name;
  }
}

// Facts() looks at the files, at most once a second: nobody else does.
bool WaitForRefusal(TlsContext* context, bool refused) {
  const TimePoint patience = Clock::System().Now() + std::chrono::seconds(20);
  while (Clock::System().Now() < patience) {
    if (context->Facts().refused_files.empty() != refused) return true;
  }
  return false;
}

TEST(Certificates, AKeyThatIsRefusedForItsModeIsUsedOnceThatIsMended) {
  const TestCertificates mine("node=helper");
  const auto context = mine.Context("node");
  const std::string chain = context->Facts().chain.front();
  const std::string key = mine.Path("node.key");
  mine.Make("node=helper");
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  ASSERT_TRUE(WaitForRefusal(context.get(), true));
  EXPECT_THAT(context->Facts().refused_files, HasSubstr("chmod 640"));
  ASSERT_EQ(::chmod(key.c_str(), 0640), 0);
  EXPECT_TRUE(WaitForRefusal(context.get(), false));
  EXPECT_NE(context->Facts().chain.front(), chain);
  ASSERT_EQ(::chmod(key.c_str(), 0644), 0);
  EXPECT_TRUE(WaitForRefusal(context.get(), true)) << "others may open the key that is in use";
}

// As where files are links into a folder of each version.
TEST(Certificates, FilesThatWereRefusedBeforeAreRefusedAgain) {
  const TestCertificates mine("node=helper");
  const std::string bad = mine.Path("bad.pem");
  std::ofstream(bad) << "no certificate\n";
  TlsFiles files = mine.Files("node");
  const std::string good = files.certificate;
  files.certificate = mine.Path("link.pem");
  const auto lead_to = [&](const std::string& file) {
    std::filesystem::create_symlink(file, mine.Path("new.pem"));
    std::filesystem::rename(mine.Path("new.pem"), files.certificate);
  };
  lead_to(good);
  const auto context = TlsContext::Create(files).value();
  for (int i = 0; i < 2; ++i) {
    lead_to(bad);
    ASSERT_TRUE(WaitForRefusal(context.get(), true)) << i;
    lead_to(good);
    ASSERT_TRUE(WaitForRefusal(context.get(), false)) << i;
  }
}

TEST(Certificates, FilesThatAreRefusedAreToldUntilTheyAreMended) {
  const TestCertificates mine("node=helper");
  const auto context = mine.Context("node");
  const std::string chain = context->Facts().chain.front();
  std::ofstream(mine.Path("node.pem"), std::ios::trunc) << "no certificate\n";
  ASSERT_TRUE(WaitForRefusal(context.get(), true));
  EXPECT_THAT(context->Facts().refused_files, HasSubstr(mine.Path("node.pem")));
  EXPECT_EQ(context->Facts().chain.front(), chain);
  mine.Make("node=helper");
  EXPECT_TRUE(WaitForRefusal(context.get(), false));
  EXPECT_NE(context->Facts().chain.front(), chain);
}

}  // namespace
}  // namespace ecpipe::certificates_test
