// SPDX-License-Identifier: Apache-2.0
// What the lines that go into a QFS chunkserver meet there, as far as they use it: names are QFS's,
// what is behind them is ours and does just what a recovery needs. One thread runs all of it.
#ifndef ECPIPE_TESTS_QFS_CHUNKSERVER_HOST_H_
#define ECPIPE_TESTS_QFS_CHUNKSERVER_HOST_H_

#include <stdint.h>

#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace host {

using std::string;

class ITimeout {
 public:
  virtual ~ITimeout() {}
  virtual void Timeout() = 0;
};

// The event loop: waits for a wake-up or a line on standard input, then calls all timers.
class NetManager {
 public:
  NetManager();
  void RegisterTimeoutHandler(ITimeout* timer) { timers_.insert(timer); }
  void UnRegisterTimeoutHandler(ITimeout* timer) { timers_.erase(timer); }
  // Any thread.
  void Wakeup();
  // Until standard input ends; `line` is called for each of its lines.
  void Run(void (*line)(const string& text));

 private:
  void CallTimers();

  int wake_fd_;
  std::set<ITimeout*> timers_;
};

struct MetaServer {
  NetManager& GetNetManager() { return *net_manager; }
  NetManager* net_manager;
};

class Properties {
 public:
  string getValue(const string& key, const string& otherwise) const {
    const std::map<string, string>::const_iterator found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
  std::map<string, string> values;
};

class IOBuffer {
 public:
  void CopyIn(const char* bytes, int size) { bytes_.append(bytes, static_cast<size_t>(size)); }
  int BytesConsumable() const { return static_cast<int>(bytes_.size()); }
  const string& bytes() const { return bytes_; }

 private:
  string bytes_;
};

struct Reader {
  struct RequestId {
    void* mPtr;
  };
};

// What the metaserver says of a recovery.
struct ReplicateChunkOp {
  int64_t fileId, chunkId, chunkVersion, targetVersion, chunkOffset, fileSize;
  int striperType, numStripes, numRecoveryStripes, stripeSize;
};

// Deletes itself when nobody holds it.
class RefCounted {
 public:
  RefCounted() : count_(0) {}
  void Ref() { ++count_; }
  void UnRef() {
    if (--count_ == 0) delete this;
  }

 protected:
  virtual ~RefCounted() {}

 private:
  int count_;
};

class StRef {
 public:
  explicit StRef(RefCounted& object) : object_(object) { object_.Ref(); }
  ~StRef() { object_.UnRef(); }

 private:
  StRef(const StRef&);
  StRef& operator=(const StRef&);
  RefCounted& object_;
};

// A line of the log, on standard output.
class LogLine {
 public:
  ~LogLine() { std::cout << "log " << text_.str() << std::endl; }
  std::ostream& stream() { return text_; }

 private:
  std::ostringstream text_;
};

}  // namespace host

#define KFS_LOG_STREAM_INFO host::LogLine().stream()
#define KFS_LOG_EOM std::flush

#endif  // ECPIPE_TESTS_QFS_CHUNKSERVER_HOST_H_
