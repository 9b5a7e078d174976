# SPDX-License-Identifier: Apache-2.0
"""QFS without QFS: chunk files as its chunkservers write them, and a metaserver that answers where
they are. `native` runs a real one, where QFS_HOME names it."""
