"""The shape of the code: sizes, names, layers, and what must not appear."""

import ast
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("protos", "stream", "features", "recmodels", "trainer", "checkpointer", "publisher", "headrace")
MAX_MODULE, MAX_FUNCTION = 400, 50
MAX_TEST_MODULE = 600  # tables of cases are long and easy to read
VAGUE = {"utils", "util", "common", "helpers", "misc"}

SOURCES = [
    path
    for package in (*PACKAGES, "benchmarks", "examples", "tests")
    for path in sorted((ROOT / package).rglob("*.py"))
    if not path.name.endswith("_pb2.py")
]
OURS = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in PACKAGES]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [node.func if isinstance(node, ast.Call) else node for node in function.decorator_list]
    return any(dotted(node).split(".")[-1] in ("njit", "jit") for node in decorators)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def kernel_lines(path: Path) -> int:
    return sum((node.end_lineno or 0) - node.lineno + 1 for node in functions(path) if is_kernel(node))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_module_is_longer_than_400_lines_kernels_aside(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines()) - kernel_lines(path)
    assert lines <= (MAX_TEST_MODULE if path.relative_to(ROOT).parts[0] == "tests" else MAX_MODULE)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_function_is_longer_than_50_lines(path: Path) -> None:
    long = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in functions(path)
        if not is_kernel(node) and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION
    }
    assert long == {}


def test_no_folder_or_module_has_a_name_that_says_nothing() -> None:
    named = [path for path in SOURCES if VAGUE & {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}]
    assert named == []


def test_tests_are_no_package() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


@pytest.mark.parametrize("path", [path for path in OURS if path.name != "__main__.py"], ids=name_of)
def test_the_environment_is_read_in_main_modules_only(path: Path) -> None:
    used = {dotted(node) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    assert not used & {"os.environ", "os.environb", "os.getenv", "os.putenv"}


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_nothing_read_can_run_code(path: Path) -> None:
    tree = tree_of(path)
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not imported & {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not {dotted(call.func) for call in calls} & {"eval", "exec", "pickle.loads", "pickle.load"}
    loads = [call for call in calls if dotted(call.func) == "torch.load"]
    assert all(any(word.arg == "weights_only" for word in call.keywords) for call in loads)


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_there_is_no_assert_outside_tests(path: Path) -> None:
    assert not any(isinstance(node, ast.Assert) for node in ast.walk(tree_of(path)))


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_every_module_opens_with_a_sentence(path: Path) -> None:
    tree = tree_of(path)
    assert ast.get_docstring(tree) or not tree.body


@pytest.mark.parametrize("package", [package for package in PACKAGES])
def test_the_errors_of_a_package_open_with_their_tree(package: str) -> None:
    path = ROOT / package / "errors.py"
    tree = tree_of(path)
    text = ast.get_docstring(tree) or ""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    raised = [node.name for node in classes if not any("Enum" in dotted(base) for base in node.bases)]
    assert [name for name in raised if name not in text] == []


def test_no_other_distribution_owns_one_of_our_import_names() -> None:
    owners = importlib.metadata.packages_distributions()
    assert {package: owners.get(package, ["headrace"]) for package in PACKAGES} == {
        package: ["headrace"] for package in PACKAGES
    }


def test_imports_only_point_down() -> None:
    # The contracts are in pyproject.toml; their command is what `make check` runs.
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
