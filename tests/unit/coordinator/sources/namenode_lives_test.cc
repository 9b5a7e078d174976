// SPDX-License-Identifier: Apache-2.0
#include "coordinator/sources/namenode_lives.h"

#include <gtest/gtest.h>

namespace ecpipe::namenode_lives_test {
namespace {

// As a NameNode of Hadoop 3.5 answers; lists of nodes are texts within the text.
std::string Answer(const std::string& live, const std::string& dead, const std::string& safe_mode,
                   const std::string& state = "active") {
  return R"({"beans":[{"name":"Hadoop:service=NameNode,name=NameNodeActivity","FilesCreated":3},)"
         R"({"name":"Hadoop:service=NameNode,name=NameNodeStatus","State":")" + state + R"("},)"
         R"({"name":"Hadoop:service=NameNode,name=NameNodeInfo","Safemode":")" + safe_mode +
         R"(","LiveNodes":")" + live + R"(","DeadNodes":")" + dead + R"("}]})";
}

constexpr char kLive[] =
    R"({\"dn-1:9866\":{\"xferaddr\":\"10.0.0.1:9866\",\"uuid\":\"u-1\",\"lastContact\":2},)"
    R"(\"dn-2:9866\":{\"xferaddr\":\"10.0.0.2:9866\",\"lastContact\":1},)"
    R"(\"dn-3:9866\":{\"xferaddr\":\"10.0.0.3:9866\",\"lastContact\":1}})";
constexpr char kDead[] =
    R"({\"dn-4:9866\":{\"xferaddr\":\"10.0.0.4:9866\",\"uuid\":\"u-4\",\"lastContact\":700},)"
    R"(\"dn-1:9867\":{\"xferaddr\":\"10.0.0.1:9867\",\"uuid\":\"u-1\",\"lastContact\":900},)"
    R"(\"10.0.0.3:9999\":{\"xferaddr\":\"10.0.0.3:9999\",\"lastContact\":800}})";

TEST(NameNodeLives, FindsADataNodeByItsUuidOrElseByItsHost) {
  const auto lives = DataNodeLives::Parse(Answer(kLive, kDead, ""));
  ASSERT_TRUE(lives.ok()) << lives.status();
  EXPECT_EQ(lives->size(), 6u);
  EXPECT_EQ(lives->safe_mode(), "");
  EXPECT_EQ(lives->Of("u-4", "elsewhere"), (DataNodeLife{true, 700}));
  EXPECT_EQ(lives->Of("u-1", ""), (DataNodeLife{false, 2})) << "it came back under another port";
  EXPECT_EQ(lives->Of("unknown", "dn-2"), (DataNodeLife{false, 1}));
  EXPECT_EQ(lives->Of("unknown", "10.0.0.2"), (DataNodeLife{false, 1}));
  EXPECT_EQ(lives->Of("unknown", "10.0.0.3"), std::nullopt) << "two are on that host";
  EXPECT_EQ(lives->Of("unknown", "10.0.0.4"), std::nullopt) << "a UUID of another";
  EXPECT_EQ(lives->Of("unknown", "10.0.0.9"), std::nullopt);
}

TEST(NameNodeLives, KnowsOfSafeMode) {
  const auto lives =
      DataNodeLives::Parse(Answer("{}", "{}", "Safe mode is ON. It was turned on manually."));
  ASSERT_TRUE(lives.ok()) << lives.status();
  EXPECT_EQ(lives->safe_mode(), "Safe mode is ON. It was turned on manually.");
  EXPECT_EQ(lives->size(), 0u);
}

TEST(NameNodeLives, AnOldAnswerDoesNotCount) {
  KnownLives lives;
  EXPECT_EQ(CountingLives(lives), nullptr);
  EXPECT_EQ(SafeModeIn(lives), "");
  lives.table = std::make_shared<const DataNodeLives>(
      DataNodeLives::Parse(Answer("{}", "{}", "Safe mode is ON.")).value());
  lives.age_seconds = Seconds(kLivesAge);
  EXPECT_EQ(SafeModeIn(lives), "Safe mode is ON.");
  lives.age_seconds += 1;
  EXPECT_EQ(CountingLives(lives), nullptr);
  EXPECT_EQ(SafeModeIn(lives), "");
}

TEST(NameNodeLives, OneInStandbyOrGarbageIsNoAnswer) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{\"beans\":[]}"),
        std::string("{\"beans\":7}"),
        std::string("{\"beans\":[7,{\"name\":7}]}"), std::string("<html>"),
        Answer(kLive, kDead, "", "standby"), Answer("7", "{}", ""), Answer("", "{}", ""),
        Answer("{}", "{", ""), Answer(kLive, kDead, "").substr(0, 300)}) {
    EXPECT_TRUE(absl::IsUnavailable(DataNodeLives::Parse(text).status())) << text;
  }
  // Facts of a form that is not expected tell nothing, and break nothing.
  const auto odd = DataNodeLives::Parse(
      Answer(R"({\"a:1\":7,\"b:1\":{\"uuid\":7,\"lastContact\":\"x\"}})", "{}", ""));
  ASSERT_TRUE(odd.ok()) << odd.status();
  EXPECT_EQ(odd->Of("", "b"), (DataNodeLife{false, 0}));
}

}  // namespace
}  // namespace ecpipe::namenode_lives_test
