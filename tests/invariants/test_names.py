"""The source of the package: a name stands for one thing, and imports run one way."""

import ast
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path

import caltest

ROOT = Path(caltest.__file__).parent
MODULES = {path: ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}


def _short(path):
    return str(path.relative_to(ROOT).with_suffix(""))


def _dotted(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _constants(tree):
    """Yield the names that statements of a module bind, with the source of their values."""
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        for target in targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and not name.id.startswith("__"):
                    yield name.id, ast.unparse(node.value)


def test_no_file_name_stands_twice():
    places = defaultdict(list)
    for path in MODULES:
        if path.name != "__init__.py":
            places[path.name].append(_short(path))
    assert [found for found in places.values() if len(found) > 1] == []


def test_no_class_name_stands_twice():
    places = defaultdict(list)
    for path, tree in MODULES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(_short(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_no_constant_has_two_values_or_the_name_of_a_class():
    values = defaultdict(dict)
    for path, tree in MODULES.items():
        for name, value in _constants(tree):
            values[name][_short(path)] = value
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                values[node.name][_short(path)] = "a class"
    assert {name: found for name, found in values.items() if len({*found.values()}) > 1} == {}


def test_few_function_names_are_of_three_modules():
    """Functions and methods, but for those that carry out a method of a base class or protocol."""
    methods, bases, places = {}, {}, defaultdict(set)
    for tree in MODULES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                methods[node.name] = {x.name for x in node.body if isinstance(x, ast.FunctionDef)}
                bases[node.name] = [ast.unparse(x).partition("[")[0] for x in node.bases]

    def inherited(name):
        above = bases.get(name, [])
        return set().union(*(methods.get(x, set()) | inherited(x) for x in above))

    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            own = inherited(node.name) if isinstance(node, ast.ClassDef) else set()
            for function in ast.iter_child_nodes(node):
                if isinstance(function, ast.FunctionDef) and function.name not in own:
                    places[function.name].add(_short(path))
    several = {
        name for name, found in places.items() if len(found) >= 3 and not name.startswith("__")
    }
    assert len(several) <= 40, sorted(several)


def _face(path):
    """Return where each name of a room's lazy face comes from."""
    stub = path.with_suffix(".pyi")
    if path.name != "__init__.py" or not stub.exists():
        return {}
    room, names = _dotted(path), {}
    for node in ast.parse(stub.read_text()).body:
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if alias.name == "*":
                names |= _face(path.parent / node.module / path.name)
            else:
                names[alias.name] = f"{room}.{node.module}" if node.module else room
    return names


def _imports(path, tree, faces, names):
    """Yield the modules of the package that a module imports when it is run."""
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or id(node) in for_types or node.level:
            continue
        for alias in node.names:
            home = faces.get(node.module, {}).get(alias.name, node.module)
            found = f"{home}.{alias.name}" if f"{home}.{alias.name}" in names else home
            if found in names and found != _dotted(path):
                yield found


def test_no_circle_of_imports():
    names = {_dotted(path) for path in MODULES}
    faces = {_dotted(path): _face(path) for path in MODULES}
    graph = {_dotted(path): {*_imports(path, tree, faces, names)} for path, tree in MODULES.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(MODULES)


def test_the_house_has_few_files():
    assert len(MODULES) <= 125
