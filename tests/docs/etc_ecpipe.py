# SPDX-License-Identifier: Apache-2.0
"""The files in /etc/ecpipe that pages and sample files name, made in a folder of the test's own."""

from __future__ import annotations

import re
from pathlib import Path

from labkit.certificates import Certificates


class EtcEcpipe:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        certificates = Certificates(folder / "tls")
        certificates.make(["head=coordinator", "node-1=helper,requestor", "client-1=requestor",
                           "stolen=helper"])
        certificates.revoke(["stolen"])
        (folder / "racks.txt").write_text("node-1 /r1\n")
        password = folder / "redis-password"
        password.touch(0o600)
        password.write_text("open sesame\n")
        (folder / "links.txt").write_text("node-1 node-2 100\n")

    def stand_in(self, text: str) -> str:
        """The text, with these files where it names those."""
        text = re.sub(r"/etc/ecpipe/(\S+\.(pem|key))", rf"{self.folder}/tls/\1", text)
        return text.replace("/etc/ecpipe/", f"{self.folder}/")
