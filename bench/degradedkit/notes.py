# SPDX-License-Identifier: Apache-2.0
"""What the numbers of a figure mean; written by a person who has looked at them."""

NOTES: dict[str, str] = {}
