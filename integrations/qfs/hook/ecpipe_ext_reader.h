// SPDX-License-Identifier: Apache-2.0
// What a QFS chunkserver's Replicator.cc includes, to recover lost chunks through ECPipe. README.md
// beside this folder says which lines to insert there. C++11, and nothing of QFS but the two types
// that ExtReader is made of.
#ifndef ECPIPE_EXT_READER_H_
#define ECPIPE_EXT_READER_H_

#include <dlfcn.h>
#include <ecpipe_qfs.h>
#include <stdint.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ecpipe_qfs {

// The library with a configuration. It is loaded at run time, so that a chunkserver without it
// builds, starts and recovers as ever.
class ExtLibrary {
 public:
  // Loads both anew for the recoveries to come; an empty `library` turns them off. Returns what to
  // log. Any thread.
  static std::string Set(const std::string& library, const std::string& config) {
    std::shared_ptr<ExtLibrary> loaded;
    std::string said = "external recovery is off";
    if (!library.empty()) {
      loaded.reset(new ExtLibrary);
      said = loaded->Load(library, config);
      if (!loaded->config_) loaded.reset();
    }
    std::lock_guard<std::mutex> lock(Current().mutex);
    Current().library = loaded;
    return said;
  }
  // Nothing: off.
  static std::shared_ptr<ExtLibrary> Get() {
    std::lock_guard<std::mutex> lock(Current().mutex);
    return Current().library;
  }
  ~ExtLibrary() {
    if (config_) config_free_(config_);
  }

  decltype(&ecpipe_qfs_open) open;
  decltype(&ecpipe_qfs_submit) submit;
  decltype(&ecpipe_qfs_poll) poll;
  decltype(&ecpipe_qfs_close) close;
  const ecpipe_qfs_config* config() const { return config_; }

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<ExtLibrary> library;
  };

  ExtLibrary() : open(), submit(), poll(), close(), handle_(), config_free_(), config_() {}
  ExtLibrary(const ExtLibrary&);
  ExtLibrary& operator=(const ExtLibrary&);
  static Slot& Current() {
    static Slot slot;
    return slot;
  }
  template <typename Function>
  bool Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle_, name));
    return *function != 0;
  }
  std::string Load(const std::string& library, const std::string& config) {
    const std::string off = "external recovery is off: ";
    // Never closed: the library stays in memory anyway.
    handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) return off + dlerror();
    decltype(&ecpipe_qfs_abi_version) version;
    decltype(&ecpipe_qfs_config_load) load;
    if (!Find("ecpipe_qfs_abi_version", &version) || version() != ECPIPE_QFS_ABI_VERSION ||
        !Find("ecpipe_qfs_config_load", &load) || !Find("ecpipe_qfs_config_free", &config_free_) ||
        !Find("ecpipe_qfs_open", &open) || !Find("ecpipe_qfs_submit", &submit) ||
        !Find("ecpipe_qfs_poll", &poll) || !Find("ecpipe_qfs_close", &close)) {
      return off + library + " has another version than the header of this chunkserver";
    }
    ecpipe_qfs_error error = {sizeof error, 0, ""};
    load(config.c_str(), &config_, &error);
    return config_ ? "external recovery by " + library + ", " + config : off + error.message;
  }

  void* handle_;
  decltype(&ecpipe_qfs_config_free) config_free_;
  ecpipe_qfs_config* config_;
};

// The source of a recovery's bytes until it fails; then QFS's own reader is, from there on.
// `NetManagerT` has RegisterTimeoutHandler(TimeoutT*), UnRegisterTimeoutHandler(TimeoutT*) and, for
// any thread, Wakeup(); it calls TimeoutT::Timeout() in its loop. All else is called by the thread
// of that loop.
template <class NetManagerT, class TimeoutT>
class ExtReader : private TimeoutT {
 public:
  class Owner {
   public:
    // The end of a read that was taken. `failure` is what to log where it failed, and 0 otherwise;
    // then there are `size` bytes, fewer than asked for where the chunk ends. It may read, stop or
    // delete the reader.
    virtual void ExtReadDone(const char* bytes, int size, const char* failure) = 0;

   protected:
    ~Owner() {}
  };

  ExtReader(NetManagerT& net_manager, Owner& owner)
      : net_manager_(net_manager), owner_(owner), read_(), waiting_(false), over_(false) {}
  ~ExtReader() { Stop(); }

  // Whether the read is taken; if not, QFS reads itself. Never calls the owner.
  bool Read(const ecpipe_qfs_chunk& chunk, int64_t position, int size) {
    if (over_ || (!library_ && position != 0)) return false;
    if (!library_ && !(library_ = ExtLibrary::Get())) return false;
    ecpipe_qfs_error error = {sizeof error, 0, ""};
    if (!read_) {
      net_manager_.RegisterTimeoutHandler(this);
      library_->open(library_->config(), &chunk, &Wake, &net_manager_, &read_, &error);
    }
    buffer_.resize(size);
    if (read_) library_->submit(read_, position, &buffer_[0], buffer_.size(), &error);
    failure_ = error.message;
    waiting_ = true;
    if (!failure_.empty()) net_manager_.Wakeup();
    return true;
  }

  // Ends the recovery through ECPipe for good. The owner hears nothing more.
  void Stop() {
    over_ = true;
    waiting_ = false;
    if (!library_) return;
    if (read_) library_->close(read_);
    read_ = 0;
    library_.reset();
    net_manager_.UnRegisterTimeoutHandler(this);
  }

 private:
  ExtReader(const ExtReader&);
  ExtReader& operator=(const ExtReader&);

  static void Wake(void* net_manager) { static_cast<NetManagerT*>(net_manager)->Wakeup(); }

  virtual void Timeout() {
    if (!waiting_) return;
    size_t got = 0;
    int at_end = 0;
    ecpipe_qfs_error error = {sizeof error, 0, ""};
    if (failure_.empty()) {
      const int code = library_->poll(read_, &got, &at_end, &error);
      if (code == ECPIPE_QFS_PENDING) return;
      if (code != ECPIPE_QFS_OK) failure_ = error.message[0] ? error.message : "no reason is known";
    }
    waiting_ = false;
    const std::string failure = failure_;
    if (!failure.empty()) Stop();
    // Nothing of this object after it, which may be gone.
    owner_.ExtReadDone(failure.empty() ? &buffer_[0] : 0, static_cast<int>(got),
                       failure.empty() ? 0 : failure.c_str());
  }

  NetManagerT& net_manager_;
  Owner& owner_;
  std::shared_ptr<ExtLibrary> library_;  // of this recovery: a new configuration leaves it alone
  ecpipe_qfs_read* read_;
  std::vector<char> buffer_;
  std::string failure_;
  bool waiting_;  // the owner is to hear of a read
  bool over_;
};

}  // namespace ecpipe_qfs

#endif  // ECPIPE_EXT_READER_H_
