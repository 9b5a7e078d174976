// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pages/page_files.h"

#include <utility>

#include "base/check.h"

namespace ecpipe {
namespace {

constexpr char kIndex[] = "index.html";
// Names of nodes and blocks are somebody's words. Should one become markup by mistake, it still
// runs nothing: the page has no script of its own in its text, and may not make one.
constexpr char kContentPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

const char* TypeOf(const std::string& name) {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  ECPIPE_CHECK(name.ends_with(".svg"));
  return "image/svg+xml";
}

}  // namespace

HttpServer::Pages PageFiles() {
  HttpServer::Pages pages;
  for (PageFile& file : PageTable()) {
    const std::string path = file.name == kIndex ? "/" : "/page/" + file.name;
    pages[path] = [reply = HttpReply{200, TypeOf(file.name), std::move(file.text),
                                     kContentPolicy}] { return reply; };
  }
  return pages;
}

}  // namespace ecpipe
