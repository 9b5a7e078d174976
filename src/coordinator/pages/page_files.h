// SPDX-License-Identifier: Apache-2.0
// The files of the status page, which are part of the program: it reads none from disk.
#pragma once

#include <string>
#include <vector>

#include "web/http_server.h"

namespace ecpipe {

struct PageFile {
  std::string name;  // e.g. "style.css"
  std::string text;
};

// Those of src/coordinator/pages/files.
std::vector<PageFile> PageTable();

// "/" is index.html, "/page/NAME" each other file. A browser that shows them runs scripts of this
// server alone, none in a text, and asks nobody else for anything.
HttpServer::Pages PageFiles();

}  // namespace ecpipe
