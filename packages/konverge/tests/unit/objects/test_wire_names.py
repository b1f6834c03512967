from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects.wire_names import CAPITAL_NAMES, attribute_name, wire_name

names = st.from_regex(r"[a-z][a-z0-9]+(_[a-z][a-z0-9]+){0,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("clusterIP", "cluster_ip"),
        ("clusterIPs", "cluster_ips"),
        ("podCIDRs", "pod_cidrs"),
        ("nonResourceURLs", "non_resource_urls"),
        ("targetWWNs", "target_wwns"),
        ("apiVersion", "api_version"),
        ("fieldsV1", "fields_v1"),
        ("from", "from_"),
        ("continue", "continue_"),
        ("hostIPC", "host_ipc"),
    ],
)
def test_the_two_names_lead_to_each_other(wire: str, attribute: str) -> None:
    assert attribute_name(wire) == attribute
    assert wire_name(attribute) == wire


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [
        ("IPBlock", "ip_block"),
        ("JSONPath", "json_path"),
        ("x-kubernetes-list-type", "x_kubernetes_list_type"),
        ("$ref", "ref"),
        ("volumeIDsByName", "volume_ids_by_name"),
        ("3dThing", "field_3d_thing"),
        ("---", "field"),
    ],
)
def test_any_wire_name_has_a_readable_attribute(wire: str, attribute: str) -> None:
    assert attribute_name(wire) == attribute


@given(st.text(max_size=30))
def test_any_wire_name_has_a_legal_attribute(wire: str) -> None:
    attribute = attribute_name(wire)
    assert attribute.isidentifier()
    assert not keyword.iskeyword(attribute)


@given(names.filter(lambda name: not keyword.iskeyword(name)))
def test_names_by_rule_lead_back(attribute: str) -> None:
    assert wire_name(attribute_name(wire_name(attribute))) == wire_name(attribute)


def test_the_table_of_capitals_leads_back() -> None:
    assert {attribute_name(wire): wire for wire in CAPITAL_NAMES.values()} == CAPITAL_NAMES
