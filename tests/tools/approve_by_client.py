"""Approves a specification through a client that was made of the API's own description; prints the answer.

approve_by_client.py PARENT_OF_THE_CLIENT ADDRESS TOKEN SPECIFICATION
"""

import json
import sys

parent, address, token, specification = sys.argv[1:]
sys.path.insert(0, parent)

from made_client import AuthenticatedClient
from made_client.api.default import approve_specification, show_specification
from made_client.models import ApprovalRequest

with AuthenticatedClient(base_url=f"http://{address}", token=token) as client:
    shown = show_specification.sync(specification, client=client)
    body = ApprovalRequest(hash_=shown.hash_)
    print(json.dumps(approve_specification.sync(specification, client=client, body=body).to_dict()))
