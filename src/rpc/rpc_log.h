// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ecpipe {

// From now on what gRPC itself has to say is an event of the daemon's log, so that each line of a
// log in JSON is JSON. Call it in main() before gRPC is used.
void TakeGrpcLog();

}  // namespace ecpipe
