// SPDX-License-Identifier: Apache-2.0
// Asks a gRPC server for its health and its services, as operators' tools do: health_client
// HOST:PORT. Debian ships neither of the two protos, so the few bytes are written by hand.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace {

std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

grpc::ByteBuffer Buffer(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

// One request and one reply on a bidirectional stream, which a unary method is as well on the wire.
std::string Ask(grpc::GenericStub* stub, const std::string& method, const std::string& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  grpc::CompletionQueue queue;
  const auto call = stub->PrepareCall(&context, method, &queue);
  void* tag = nullptr;
  bool ok = true;
  const auto wait = [&] { return queue.Next(&tag, &ok) && ok; };
  grpc::ByteBuffer reply;
  call->StartCall(nullptr);
  if (!wait()) return "";
  call->WriteLast(Buffer(request), grpc::WriteOptions(), nullptr);
  if (!wait()) return "";
  call->Read(&reply, nullptr);
  if (!wait()) return "";
  const std::string text = Text(reply);
  grpc::Status status;
  call->Finish(&status, nullptr);
  wait();
  queue.Shutdown();
  return status.ok() ? text : "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  grpc::GenericStub stub(grpc::CreateChannel(argv[1], grpc::InsecureChannelCredentials()));
  // HealthCheckResponse{status: SERVING = 1}; the request names no service: the whole server.
  const bool serving = Ask(&stub, "/grpc.health.v1.Health/Check", "") == std::string("\x08\x01", 2);
  // ServerReflectionRequest{list_services: "*"}; the reply holds the names as plain text.
  const std::string services =
      Ask(&stub, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  const size_t name = services.find("ecpipe.v1.");
  std::printf("%s\n", serving ? "serving" : "not serving");
  if (name != std::string::npos) {
    const size_t end = services.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._", name);
    std::printf("%s\n", services.substr(name, end - name).c_str());
  }
  return serving && name != std::string::npos ? 0 : 1;
}
