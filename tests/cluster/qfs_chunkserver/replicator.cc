// SPDX-License-Identifier: Apache-2.0
// The files *.inc are the lines of integrations/qfs/README.md, as they go into QFS's Replicator.cc.
#include "replicator.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "A.inc"

namespace host {
namespace {

const int kMib = 1 << 20;
const int64_t kChunkLimit = int64_t(64) << 20;
const int kHeaderBytes = 16384;

void Require(bool holds, const char* what) {
  if (holds) return;
  std::cout << "broken " << what << std::endl;
  std::abort();
}

int Times(int a, int b) {
  int product = 0;
  for (; b != 0; b >>= 1) {
    if (b & 1) product ^= a;
    a = (a << 1) ^ (a & 0x80 ? 0x11d : 0);
  }
  return product;
}

// Adds the term's bytes at `offset` to the sum; false: the file cannot be read.
bool Add(const Term& term, int64_t offset, string* sum) {
  std::ifstream file(term.chunk_file.c_str(), std::ios::binary);
  if (!file) return false;
  string bytes(sum->size(), '\0');
  file.seekg(kHeaderBytes + offset);
  file.read(&bytes[0], static_cast<std::streamsize>(bytes.size()));
  std::vector<char> table;
  for (int i = 0; i < 256; ++i) table.push_back(static_cast<char>(Times(i, term.coefficient)));
  for (size_t i = 0; i < static_cast<size_t>(file.gcount()); ++i) {
    (*sum)[i] = static_cast<char>((*sum)[i] ^ table[static_cast<unsigned char>(bytes[i])]);
  }
  return true;
}

#include "B.inc"

class RSReplicatorImpl : public RefCounted,
                         public Recovery,
#include "C.inc"
{
 public:
  RSReplicatorImpl(MetaServer& metaServer, const ReplicateChunkOp& op, const Script& script,
                   void (*ended)(const string& name))
      : mFileId(op.fileId),
        mChunkId(op.chunkId),
        mOp(op),
        mOwner(&mOp),
        mScript(script),
        mEnded(ended),
        mOutput(script.output.c_str(), std::ios::binary),
        mReader(0),
        mOffset(0),
        mNativeBytes(0),
        mReadSize(kMib),
        mReadInFlightFlag(false),
        mOver(false),
#include "E.inc"
  {
    Ref();
  }

  void Start() { Next(); }
  void Go() {
    mScript.hold_at = -1;
    Next();
  }
  void Cancel() { HandleCancel(); }

 private:
  ~RSReplicatorImpl() {}

  void Next() {
    StRef ref(*this);
    if (mScript.hold_at >= 0 && mOffset >= mScript.hold_at) {
      std::cout << "held " << mScript.name << " " << mOffset << std::endl;
      return;
    }
    const bool cancel = mScript.cancel_at >= 0 && mOffset >= mScript.cancel_at;
    HandleRead();
    if (cancel && !mOver) HandleCancel();
  }

  void HandleCancel() {
    const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
#include "F.inc"
    const int64_t took = std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::steady_clock::now() - begun)
                             .count();
    std::cout << "cancelled " << mScript.name << " " << mOffset << " " << took << std::endl;
    End();
  }

  void HandleRead() {
    Require(!mReadInFlightFlag && !mOver,
            "a read while another one is under way, or after the end");
    mReadInFlightFlag = true;
#include "G.inc"
    IOBuffer buf;
    const int64_t left = mScript.length - mOffset;
    string sum(static_cast<size_t>(std::min<int64_t>(left, mReadSize)), '\0');
    bool good = !mScript.siblings.empty();
    for (size_t i = 0; i < mScript.siblings.size() && good && !sum.empty(); ++i) {
      good = Add(mScript.siblings[i], mOffset, &sum);
    }
    if (!good) {
      std::cout << "failed " << mScript.name << " " << mOffset << " no sibling" << std::endl;
      return End();
    }
    mNativeBytes += static_cast<int64_t>(sum.size());
    buf.CopyIn(sum.data(), static_cast<int>(sum.size()));
    Reader::RequestId id = Reader::RequestId();
    id.mPtr = this;
    Done(mReader, 0, mOwner->chunkOffset + mOffset, buf.BytesConsumable(), &buf, id);
  }

#include "H.inc"

  void Done(Reader*, int status, int64_t offset, int size, IOBuffer* buf, Reader::RequestId id) {
    Require(mReadInFlightFlag && !mOver, "an outcome of a read that nobody waits for");
    Require(status == 0 && offset == mOwner->chunkOffset + mOffset && id.mPtr == this &&
                size == buf->BytesConsumable(),
            "the outcome of another read");
    mReadInFlightFlag = false;
    mOutput.write(buf->bytes().data(), size);
    mOffset += size;
    if (size == mReadSize && mOffset < kChunkLimit) return Next();
    mOutput.close();
    std::cout << "done " << mScript.name << " " << mOffset << " " << mNativeBytes << std::endl;
    End();
  }

  void End() {
    mOver = true;
    mEnded(mScript.name);
    UnRef();  // as an operation that has been answered
  }

  const int64_t mFileId;
  const int64_t mChunkId;
  const ReplicateChunkOp mOp;
  const ReplicateChunkOp* const mOwner;
  Script mScript;
  void (*const mEnded)(const string& name);
  std::ofstream mOutput;
  Reader* const mReader;
  IOBuffer mReadTail;  // what QFS could not write yet: nothing, by reads of a MiB
  int64_t mOffset;
  int64_t mNativeBytes;
  const int mReadSize;
  bool mReadInFlightFlag;
  bool mOver;
#include "D.inc"
};

}  // namespace

void Replicator::SetParameters(const Properties& props) {
#include "I.inc"
}

Recovery* NewRecovery(MetaServer& meta_server, const ReplicateChunkOp& op, const Script& script,
                      void (*ended)(const string& name)) {
  return new RSReplicatorImpl(meta_server, op, script, ended);
}

}  // namespace host
