"""The report opened in a browser: what a reader sees and does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks.scale_models import BUILDERS
from benchmarks.zoo import model_path
from foldline.support.passes import STAGES
from foldline.workbench.measured import measured
from foldline.workbench.page import document, write_page
from tests.foldline.workbench.browser import Opened, browser, count
from tests.foldline.workbench.reported import HOSTILE, hostile_model, reported


@pytest.fixture(scope="module")
def chrome() -> Iterator[webdriver.Chrome]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def small(folder: Path) -> Path:
    compiled, recorder, _ = reported()
    feed = {"x": np.ones((2, 3, 8, 8), np.float32)}
    run = measured(compiled.session(), feed, profile=True)
    path = folder / "small.html"
    write_page(path, document("small.onnx", recorder, compiled.report, run))
    return path


@pytest.fixture
def page(chrome: webdriver.Chrome, small: Path) -> Iterator[Opened]:
    opened = Opened(chrome, small)
    yield opened
    assert opened.errors() == []


def keys(page: Opened, text: str) -> None:
    page.chrome.find_element(By.TAG_NAME, "body").send_keys(text)


def test_the_page_opens_at_the_last_stage(page: Opened) -> None:
    buttons = page.chrome.find_elements(By.CSS_SELECTOR, "#timeline .stage .name")
    numbered = [f"{number}{name}" for number, name in enumerate(["import", *STAGES])]
    assert [button.text.replace("\n", "").replace(" ", "") for button in buttons] == numbered
    assert page.js("return report.stage") == len(STAGES)
    assert any("relu" in label for label in page.shown())
    assert {"x float[N,3,8,8]", "y float[N,4,8,8]"} <= page.shown()


def test_a_stage_switch_shows_the_nodes_of_that_stage(page: Opened) -> None:
    keys(page, "0")
    assert page.names() == {"twice", "conv", "same", "relu", "scale"}
    assert {"Conv conv", "Identity same", "Relu relu", "Add twice"} <= page.shown()
    keys(page, str(len(STAGES)))
    assert "same" not in page.names()
    assert "Identity same" not in page.shown()


def test_before_and_after_are_the_two_sides_of_a_stage(page: Opened) -> None:
    keys(page, "b")
    assert page.js("return report.view.counts.fused") > 0
    assert "Relu relu" in page.shown()
    before = page.area("picture")
    assert count(before, page.color("fused-fill")) > 500
    page.chrome.find_element(By.ID, "after").click()
    assert "Relu relu" not in page.shown()


def test_each_status_has_its_colour(page: Opened) -> None:
    wanted = {"folded": "twice", "removed": "same", "fused": "conv"}
    names = ["page", "new-fill", "changed-fill", *(f"{status}-fill" for status in wanted)]
    assert len({page.color(name) for name in names}) == len(names)
    for status, label in wanted.items():
        stage = page.js(
            """return report.model.stages.findIndex((_, number) => {
              const view = report.model.view(number, "before");
              const found = (n) => n.label === arguments[1] && view.status(n) === arguments[0];
              return number && view.nodes.some(found);
            })""",
            status,
            label,
        )
        page.js("report.select(arguments[0], 'before'); report.picture.fit()", stage)
        assert count(page.area("picture"), page.color(f"{status}-fill")) > 300, status
        assert count(page.area("legend"), page.color(f"{status}-fill")) > 100, status


def test_search_finds_a_node_and_centres_it(page: Opened) -> None:
    keys(page, "0/")
    search = page.chrome.switch_to.active_element
    assert search.get_attribute("id") == "search"
    search.send_keys("iden")
    results = page.chrome.find_elements(By.CSS_SELECTOR, "#results button")
    assert [result.text for result in results] == ["Identity same"]
    search.send_keys(Keys.ENTER)
    page.settle()
    assert page.js("return report.selected.label") == "same"
    x, y = page.js(
        "const c = report.picture.cy, p = c.$(':selected').renderedPosition();"
        "return [p.x / c.width(), p.y / c.height()]"
    )
    assert (x, y) == (pytest.approx(0.5, abs=0.02), pytest.approx(0.5, abs=0.02))
    assert count(page.area("picture"), page.color("accent")) > 100


def test_search_tells_where_else_a_node_is(page: Opened) -> None:
    page.chrome.find_element(By.ID, "search").send_keys("same")
    (first, *_) = page.chrome.find_elements(By.CSS_SELECTOR, "#results button")
    assert first.text == "Identity same after import"
    first.click()
    assert page.js("return [report.stage, report.selected.label]") == [0, "same"]


def test_details_say_what_and_why(page: Opened) -> None:
    page.js("report.goto('relu')")
    text = page.chrome.find_element(By.ID, "details").text
    assert "fused in place of conv" in text
    assert "float[N,4,8,8]" in text
    assert "applied" in text
    assert "fusion/conv-activation" in text


def test_remarks_are_filtered(page: Opened) -> None:
    page.js("report.tab('remarks')")
    rows = page.chrome.find_elements(By.CSS_SELECTOR, "#remarks tbody tr")
    page.chrome.find_element(By.CSS_SELECTOR, "#remarks input").send_keys("relu")
    left = page.chrome.find_elements(By.CSS_SELECTOR, "#remarks tbody tr")
    assert 0 < len(left) < len(rows)
    assert all("relu" in row.text.lower() for row in left)


def test_every_table_is_filled(page: Opened) -> None:
    for tab, wanted in (
        ("passes", "constant-folding"),
        ("constants", "float32[4, 3, 1, 1]"),
        ("memory", "Arena"),
        ("profile", "foldline.Conv"),
    ):
        page.chrome.find_element(By.CSS_SELECTOR, f"#tabs [data-tab={tab}]").click()
        assert wanted in page.chrome.find_element(By.ID, tab).text
    page.js("report.tab('memory')")
    arena = page.area("memory")[60:300]
    assert count(arena, page.color("accent-fill")) > 1000
    assert count(arena, page.color("inside")) > 1000


def test_the_picture_is_not_blank_and_follows_the_colour_scheme(page: Opened) -> None:
    light = page.area("picture")
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    page.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    dark = page.area("picture")
    background = page.color("page")
    page.chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert light.mean() > 200 > 80 > dark.mean()
    assert count(dark, background) > dark.size / 3 / 2
    assert len(np.unique(light.reshape(-1, 3), axis=0)) > 20


def test_hostile_names_are_texts(chrome: webdriver.Chrome, folder: Path) -> None:
    data = reported(hostile_model(), **{"oo.level": "O0"})[2] | {"title": HOSTILE}
    write_page(folder / "hostile.html", data)
    page = Opened(chrome, folder / "hostile.html")
    assert page.chrome.find_element(By.TAG_NAME, "h1").text == HOSTILE
    page.js("report.goto(arguments[0])", HOSTILE)
    assert HOSTILE in page.chrome.find_element(By.ID, "details").text
    assert page.chrome.find_elements(By.CSS_SELECTOR, "b > b, #details b b") == []
    assert page.errors() == []


def look_through(page: Opened, name: str, most: int) -> None:
    """Every stage, a search, a region opened and closed: few elements, no complaint."""
    for stage in range(len(STAGES) + 1):
        page.js("report.select(arguments[0], 'after')", stage)
        page.settle()
        rows = page.js(
            "return [report.view.nodes.length, report.model.stages[report.stage].rows.length]"
        )
        assert rows[0] == rows[1]
        assert 0 < len(page.shown()) <= most
    page.js("report.select(0)")
    page.chrome.find_element(By.ID, "close").click()
    closed = page.js("return report.picture.cy.nodes('.region').length")
    assert closed > 1
    page.js("report.picture.cy.nodes('.region')[0].emit('tap')")
    assert page.js("return report.picture.cy.nodes('.open').length") == 1
    assert len(page.shown()) > closed
    page.chrome.find_element(By.CSS_SELECTOR, "#details button").click()
    assert page.js("return report.picture.cy.nodes('.region').length") == closed
    search = page.chrome.find_element(By.ID, "search")
    search.send_keys(name, Keys.ENTER)
    page.settle()
    assert page.js("return report.selected.label") == name
    assert any(name in label or name[-10:] in label for label in page.shown())
    assert len(page.shown()) <= most
    assert count(page.area("picture"), page.color("accent")) > 100
    assert page.errors() == []


def test_a_graph_of_some_hundred_nodes_is_shown_in_regions(
    chrome: webdriver.Chrome, folder: Path
) -> None:
    path = folder / "chain.html"
    write_page(path, reported(BUILDERS["chain"](300), **{"oo.level": "O1"})[2])
    look_through(Opened(chrome, path), "u57", most=80)


def test_a_body_hangs_on_the_node_that_holds_it(chrome: webdriver.Chrome, folder: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 20]>
    g (float[N] x) => (float[N] y) { [a] a = Exp(x) [b] b = Neg(a) [c] y = Mul(b, a) }
    """
    path = folder / "body.html"
    write_page(path, reported(text)[2])
    page = Opened(chrome, path)
    edges = page.js(
        "return report.view.edges.map((e) => e.map((n) => n.op ?? n.input ?? n.output).join(' > '))"
    )
    (holder,) = {edge.split(" > ")[1] for edge in edges if edge.startswith("x > ")}
    assert holder == "foldline.ElementWise"
    assert {f"{holder} > Exp", "Exp > Neg", "Neg > Mul", f"{holder} > y"} <= set(edges)
    assert "x > Exp" not in edges
    assert page.errors() == []


@pytest.mark.slow
def test_a_reader_cannot_open_too_much(chrome: webdriver.Chrome, folder: Path) -> None:
    path = folder / "long.html"
    write_page(path, reported(BUILDERS["chain"](3000), **{"oo.level": "O0"})[2])
    page = Opened(chrome, path)
    for index in range(0, 1000, 40):
        page.js("report.goto(arguments[0])", f"u{index}")
        assert len(page.shown()) <= 450
    assert any(label.endswith(f"u{index}") for label in page.shown())
    assert page.errors() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("builder", "name"), [("mixed", "block42/layer7/Floor"), ("chain", "u1234")]
)
def test_a_graph_of_10000_nodes(
    chrome: webdriver.Chrome, folder: Path, builder: str, name: str
) -> None:
    path = folder / f"{builder}.html"
    write_page(path, reported(BUILDERS[builder](10_000), **{"oo.level": "O3"})[2])
    assert path.stat().st_size < 20e6
    look_through(Opened(chrome, path), name, most=400)


@pytest.mark.slow
def test_a_detector_of_text(chrome: webdriver.Chrome, folder: Path) -> None:
    model = model_path("ppocrv4_det")
    if not model.is_file():
        pytest.skip("make zoo fetches the model")
    path = folder / "ppocrv4_det.html"
    write_page(path, reported(onnx.load(model))[2])
    assert path.stat().st_size < 5e6
    look_through(Opened(chrome, path), "p2o.Conv.58", most=400)
