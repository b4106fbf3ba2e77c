# SPDX-License-Identifier: Apache-2.0
"""Makes a container of Azure's protocol: make_container.py PORT ACCOUNT FILE-OF-THE-KEY CONTAINER."""
import base64
import email.utils
import hashlib
import hmac
import sys
import urllib.error
import urllib.request

port, account, key, container = sys.argv[1:]
headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
said = "PUT\n" + "\n" * 11 + "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
said += f"/{account}/{account}/{container}\nrestype:container"
with open(key, "rb") as file:
    digest = hmac.new(base64.b64decode(file.read()), said.encode(), hashlib.sha256).digest()
headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
url = f"http://127.0.0.1:{port}/{account}/{container}?restype=container"
try:
    urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers), timeout=20)
except urllib.error.HTTPError as error:
    if error.code != 409:  # it is there
        raise
