"""Routes of Django: ``path``, ``re_path``, ``include``, class-based views, and REST framework's routers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agents.source.routes.mounts import Key, Mounts
from agents.source.routes.python_source import chain_of
from agents.source.routes.python_tree import Handler, PythonTree, argument
from agents.source.routes.resolve import Entity, Scope
from agents.source.routes.route import Route, join_paths
from pipeline.counting.routes.patterns import of_flask, of_regex

FRAMEWORK = "django"

_PATTERNS = "urlpatterns"
_PLAIN, _REGEX = ("path",), ("re_path", "url")
_WRAPPERS = ("i18n_patterns", "list", "format_suffix_patterns", "patterns")
_ACTIONS = (
    *(("list", "GET", False), ("create", "POST", False), ("retrieve", "GET", True), ("update", "PUT", True)),
    *(("partial_update", "PATCH", True), ("destroy", "DELETE", True)),
)
"""Method of a view set, HTTP method, and whether it is of one object."""

_MIXINS = {
    "ListModelMixin": ("list",),
    "CreateModelMixin": ("create",),
    "RetrieveModelMixin": ("retrieve",),
    "UpdateModelMixin": ("update", "partial_update"),
    "DestroyModelMixin": ("destroy",),
    "ReadOnlyModelViewSet": ("list", "retrieve"),
    "ModelViewSet": tuple(name for name, _, _ in _ACTIONS),
}
_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class _Entry:
    """One route of a list of patterns: the list, its pattern under it, and the view."""

    key: Key
    pattern: str
    view: ast.expr | None
    scope: Scope


def find_django(tree: PythonTree) -> Iterator[Route]:
    """Yield the routes of every list of patterns, those that are included under their prefixes."""
    reader = _Reader(tree)
    for key, value, scope in reader.lists():
        reader.read(key, value, scope)
    for entry in reader.entries:
        handler = tree.handler(entry.view, entry.scope)
        if handler is None:
            continue
        for pattern in reader.mounts.paths(entry.key, entry.pattern):
            yield from tree.routes_of(handler, pattern, _methods(tree, handler, entry), FRAMEWORK)
    yield from _view_sets(tree, reader.mounts)


class _Reader:
    """Reads lists of patterns into entries and mounts."""

    def __init__(self, tree: PythonTree) -> None:
        self.mounts = Mounts()
        self.entries: list[_Entry] = []
        self._tree = tree
        self._anonymous = 0

    def lists(self) -> Iterator[tuple[Key, ast.expr, Scope]]:
        """Yield the lists that modules bind: ``urlpatterns``, and those of other names that hold patterns."""
        for sites in self._tree.sites:
            for name, value, scope in sites.assigned:
                is_list = isinstance(value, ast.List) and any(_is_pattern(element) for element in value.elts)
                if name == _PATTERNS or is_list:
                    yield (sites.file.unit.path, name), value, scope

    def read(self, key: Key, value: ast.expr, scope: Scope, depth: int = 0) -> None:
        """Read what a list of patterns holds."""
        if depth > _DEEPEST:
            return
        self.mounts.add(key)
        match value:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                for item in elements:
                    inner = item.value if isinstance(item, ast.Starred) else item
                    self.read(key, inner, scope, depth + 1)
            case ast.BinOp(left=left, right=right):
                self.read(key, left, scope, depth + 1)
                self.read(key, right, scope, depth + 1)
            case ast.Call() if _is_pattern(value):
                self._pattern(key, value, scope, depth)
            case ast.Call() if set(chain_of(value.func)[-1:]) & set(_WRAPPERS):
                for item in value.args:
                    self.read(key, item, scope, depth + 1)
            case ast.Name() | ast.Attribute():
                if child := self._included(value, scope, depth):
                    self.mounts.mount(key, child)

    def _pattern(self, key: Key, node: ast.Call, scope: Scope, depth: int) -> None:
        name = chain_of(node.func)[-1]
        text = self._tree.text(argument(node, (0, "route")), scope)
        if text is None:
            return
        pattern = of_flask(text) if name in _PLAIN else of_regex(text)
        view = argument(node, (1, "view"))
        if isinstance(view, ast.Call) and chain_of(view.func)[-1:] == ("include",):
            child = self._included(argument(view, (0, "arg")), scope, depth)
            if child:
                self.mounts.mount(key, child, pattern)
            return
        self.entries.append(_Entry(key, pattern, view, scope))

    def _included(self, node: ast.expr | None, scope: Scope, depth: int) -> Key | None:
        """Return the list that ``include`` names: a module by its name or itself, a list, a router."""
        match node:
            case ast.Tuple(elts=[first, *_]):
                return self._included(first, scope, depth)
            case ast.List() | ast.BinOp():
                self._anonymous += 1
                key = (scope.unit.path, f"<list {self._anonymous}>")
                self.read(key, node, scope, depth + 1)
                return key
            case ast.Attribute(value=value, attr="urls"):
                return self._tree.key(value, scope)
            case ast.Name() | ast.Attribute():
                entity = self._tree.resolver.used(chain_of(node), scope)[0]
                if entity and entity.unit and not (entity.variable or entity.type or entity.function):
                    return (entity.unit.path, _PATTERNS)
                return self._tree.key(node, scope)
        module = self._tree.text(node, scope)
        unit = self._tree.module(module, scope) if module else None
        return (unit.path, _PATTERNS) if unit else None


def _is_pattern(node: ast.expr) -> bool:
    name = chain_of(node.func)[-1:] if isinstance(node, ast.Call) else ()
    return bool(name) and name[0] in (*_PLAIN, *_REGEX)


def _methods(tree: PythonTree, handler: Handler, entry: _Entry) -> Sequence[str]:
    """Return the methods that decorators of a function allow; none where all are."""
    function = handler.entity.function
    if function is None or handler.entity.unit is None:
        return _of_view_set(entry.view)
    for decorator in tree.decorators(handler.entity.unit, function.qualified):
        name = chain_of(decorator)[-2:] if isinstance(decorator, ast.Call) else chain_of(decorator)[-1:]
        if name[:1] == ("require_GET",):
            return ["GET"]
        if name[:1] == ("require_POST",):
            return ["POST"]
        if name[:1] == ("require_safe",):
            return ["GET", "HEAD"]
        if isinstance(decorator, ast.Call) and name[:1] in (("api_view",), ("require_http_methods",)):
            return tree.texts(decorator.args[0] if decorator.args else None, Scope(handler.entity.unit)) or [
                "GET"
            ]
    return []


def _of_view_set(view: ast.expr | None) -> Sequence[str]:
    """Return the methods of ``ViewSet.as_view({"get": "list"})``."""
    actions = view.args[0] if isinstance(view, ast.Call) and view.args else None
    keys = actions.keys if isinstance(actions, ast.Dict) else []
    return [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]


def _view_sets(tree: PythonTree, mounts: Mounts) -> Iterator[Route]:
    """Yield the routes of view sets that are registered with routers."""
    for site in tree.calls:
        if site.name != "register" or not isinstance(site.node.func, ast.Attribute):
            continue
        prefix, handler = tree.text_at(site, (0, "prefix")), tree.handler_at(site, (1, "viewset"))
        key = tree.key(site.node.func.value, site.scope)
        if prefix is not None and handler and handler.entity.type:
            for pattern in mounts.paths(key, of_regex(prefix)):
                yield from _view_set(tree, handler, pattern)


def _view_set(tree: PythonTree, handler: Handler, pattern: str) -> Iterator[Route]:
    unit, type_ = handler.entity.unit, handler.entity.type
    if unit is None or type_ is None:
        return
    inherited = {name for base in tree.base_names(unit, type_) for name in _MIXINS.get(base, ())}
    for name, verb, single in _ACTIONS:
        method = tree.resolver.method(unit, type_, name)
        function = method.function if method else None
        if function is None and name not in inherited:
            continue
        whole = join_paths(pattern, "{id}") if single else pattern
        if function and method and method.unit:
            yield Route((verb,), whole, function.name, method.unit.path, function.line, FRAMEWORK)
        else:
            yield Route((verb,), whole, handler.name, handler.path, handler.line, FRAMEWORK)
    for function in [
        function_of for function_of in unit.functions.values() if function_of.owner == type_.qualified
    ]:
        for decorator in tree.decorators(unit, function.qualified):
            if not isinstance(decorator, ast.Call) or chain_of(decorator.func)[-1:] != ("action",):
                continue
            detail = argument(decorator, (1, "detail"))
            single = isinstance(detail, ast.Constant) and detail.value is True
            path = (
                tree.text(argument(decorator, (2, "url_path")), Scope(unit))
                or function.qualified.rpartition(".")[2]
            )
            methods = tree.texts(argument(decorator, (0, "methods")), Scope(unit)) or ["GET"]
            whole = join_paths(pattern, "{id}" if single else "", of_regex(path))
            answered = Handler(Entity(unit, function=function), function.name, unit.path, function.line)
            yield from tree.routes_of(answered, whole, methods, FRAMEWORK)
