# SPDX-License-Identifier: Apache-2.0
"""A real HDFS with ECPipe beside it, for the integration test and the lab."""
