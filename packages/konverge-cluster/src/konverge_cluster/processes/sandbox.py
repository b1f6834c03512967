"""The sandbox of a pod: a directory, a supervisor, an address, and volumes."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from konverge.objects import Quantity
from konverge_cluster.processes.api_proxies import ApiProxy
from konverge_cluster.processes.expansion import substitute_paths
from konverge_cluster.processes.images import LocalImage, LocalImages
from konverge_cluster.processes.kubeconfigs import SignClient, sign_account, write_kubeconfig
from konverge_cluster.processes.readable_copies import ReadableCopies, is_public
from konverge_cluster.processes.sources import MissingSource, PodFacts, Sources, claim_name
from konverge_cluster.processes.supervisors import Command, Mount, Running, Supervisor
from konverge_cluster.processes.users import NOBODY, User, passwd_with, user_of
from konverge_cluster.processes.volumes import Owner, VolumeFile, is_file_volume, volume_files, write_files

__all__ = ["Sandbox", "SandboxOptions"]

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHARED_MODE: Final = 0o777
_MESSAGE_PATH: Final = "/dev/termination-log"


@dataclass(frozen=True, kw_only=True)
class SandboxOptions:
    """What the sandboxes of a runtime share. `namespaces` is whether they have namespaces of their own."""

    images: LocalImages
    directory: Path
    namespaces: bool
    copies: ReadableCopies
    user: int = NOBODY
    log_limit: int = 10 * 1024 * 1024
    crash_backoff: float = 10.0
    api_server: Callable[[], tuple[str, int] | None] = field(default=lambda: None)
    sign_client: SignClient | None = None


class Sandbox:
    """Where the containers of one pod run."""

    def __init__(self, options: SandboxOptions, pod: Mapping[str, Any]) -> None:
        self.options = options
        self.directory: Path = options.directory / "pods" / pod["metadata"]["uid"]
        self._pod = pod
        self._spec = pod["spec"]
        self.api_proxy = ApiProxy(options.api_server)
        self._supervisor: Supervisor | None = None
        self._volumes: dict[str, Path] = {}
        self._written: dict[str, dict[str, VolumeFile]] = {}
        self._commands = 0

    @property
    def is_open(self) -> bool:
        """Whether containers can be started."""
        return self._supervisor is not None and not self._supervisor.is_lost

    @property
    def was_open(self) -> bool:
        """Whether it is open or was so before: then the pod has an address, even if it ended at once."""
        return self._supervisor is not None

    @property
    def namespaces(self) -> bool:
        """Whether containers have mount and PID namespaces; else paths are substituted."""
        return self.options.namespaces

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor.

        Raises: RuntimeError when the sandbox is not open.
        """
        if self._supervisor is None:
            raise RuntimeError(f"the sandbox of pod {self._pod['metadata']['name']} is not open")
        return self._supervisor

    async def open(self) -> None:
        """Create the directory and start the supervisor.

        Raises: OSError when that fails.
        """
        for name in ("", "volumes", "logs", "roots", "scratch", "messages"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
            (self.directory / name).chmod(0o711)
        if self._supervisor is not None:
            await self._supervisor.close()
            self._volumes = {name: path for name, path in self._volumes.items() if not self._is_in_memory(name)}
        self.api_proxy.open()
        self._supervisor = await Supervisor.start(namespaces=self.namespaces)

    async def close(self) -> None:
        """Kill every process of the pod; logs and volumes stay."""
        self.api_proxy.close()
        if self._supervisor is not None:
            await self._supervisor.close()

    async def remove(self) -> None:
        """Kill every process of the pod and remove its files."""
        await self.close()
        await asyncio.to_thread(shutil.rmtree, self.directory, ignore_errors=True)

    # Volumes

    async def sync_volumes(self, facts: PodFacts, sources: Sources) -> None:
        """Create the volumes of the pod, and update their files to the current objects.

        Raises: MissingSource, with the message of the kubelet's event.
        """
        self._pod = facts.pod
        for volume in self._spec.get("volumes") or ():
            name = volume["name"]
            try:
                if name not in self._volumes:
                    self._volumes[name] = await self._create_volume(volume, sources)
                if is_file_volume(volume):
                    self._write_files(name, await volume_files(volume, facts, sources))
            except (MissingSource, OSError) as error:
                self._volumes.pop(name, None)
                raise MissingSource(f'MountVolume.SetUp failed for volume "{name}" : {error}') from error

    def _write_files(self, name: str, files: dict[str, VolumeFile]) -> None:
        if self._written.get(name) != files:
            write_files(self._volumes[name], files, self._file_owner())
            self._written[name] = files

    def _file_owner(self) -> Owner:
        return Owner(gid=self._fs_group()) if os.getuid() == 0 else Owner()

    def _fs_group(self) -> int | None:
        group: int | None = (self._spec.get("securityContext") or {}).get("fsGroup")
        return group

    async def _create_volume(self, volume: Mapping[str, Any], sources: Sources) -> Path:
        name = volume["name"]
        if claim := claim_name(volume, self._pod["metadata"]["name"]):
            path = self.options.directory / "claims" / await sources.bound_volume(claim)
        elif is_file_volume(volume) or "emptyDir" in volume:
            path = self.directory / "volumes" / name
        else:
            source = next((one for one in volume if one != "name"), "")
            raise MissingSource(f"volume source {source} is not supported by process nodes")
        path.mkdir(parents=True, exist_ok=True)
        if is_file_volume(volume):
            path.chmod(0o755)
        else:
            self._share(path)
        if self._is_in_memory(name):
            limit = (volume.get("emptyDir") or {}).get("sizeLimit")
            size = Quantity(limit).whole() if limit else 0
            await self.supervisor.mount_tmpfs(str(path), size=size, mode=_SHARED_MODE)
        return path

    def _share(self, path: Path) -> None:
        """Let the containers of the pod write to a directory."""
        group = self._fs_group()
        if os.getuid() == 0 and group is not None:
            os.chown(path, -1, group)
            path.chmod(0o2777)
        else:
            path.chmod(_SHARED_MODE)

    def _is_in_memory(self, name: str) -> bool:
        """Report whether a volume is a tmpfs: an emptyDir with a size limit or in memory, with namespaces."""
        for volume in self._spec.get("volumes") or ():
            if volume["name"] == name and "emptyDir" in volume and self.namespaces:
                source = volume["emptyDir"] or {}
                return source.get("medium") == "Memory" or "sizeLimit" in source
        return False

    def _size_limits(self) -> dict[str, str]:
        volumes = self._spec.get("volumes") or ()
        limits = {one["name"]: (one.get("emptyDir") or {}).get("sizeLimit") for one in volumes}
        return {name: limit for name, limit in limits.items() if limit}

    @property
    def has_size_limits(self) -> bool:
        """Whether volumes must be measured; with namespaces the file system has the limit."""
        return not self.namespaces and bool(self._size_limits())

    def find_full_volume(self) -> tuple[str, str]:
        """Return the name and the limit of a volume that is larger than its limit, empty if there is none."""
        for name, limit in self._size_limits().items():
            path = self._volumes.get(name)
            if path is not None and _size(path) > Quantity(limit).whole():
                return name, limit
        return "", ""

    # Commands

    def user(self, container: Mapping[str, Any], image: LocalImage) -> User:
        """Return the user of a container.

        Raises: RefusedUser for root.
        """
        pod_context, context = self._spec.get("securityContext") or {}, container.get("securityContext") or {}
        return user_of(pod_context, context, image_user=image.user, default=self.options.user)

    def log_path(self, container: str, run: int) -> Path:
        """Return the log of one run of a container."""
        return self.directory / "logs" / f"{container}-{run}.log"

    def message_path(self, container: str, run: int) -> Path:
        """Return the file of the termination message of one run of a container."""
        return self.directory / "messages" / f"{container}-{run}"

    def private_directory(self, container: str) -> Path:
        """Return a directory in which a container may write, outside of its volumes."""
        path = self.directory / "scratch" / container
        path.mkdir(exist_ok=True)
        path.chmod(0o1777)
        return path

    def base_environment(self, container: Mapping[str, Any]) -> dict[str, str]:
        """Return the variables that every container has."""
        found = {"PATH": _PATH, "HOSTNAME": self._pod["metadata"]["name"]}
        if self.namespaces:
            found["HOME"] = "/tmp"
        else:
            scratch = str(self.private_directory(container["name"]))
            found |= {"HOME": scratch, "TMPDIR": scratch}
        address = self.api_proxy.address
        if address is not None:
            found |= {"KUBERNETES_SERVICE_HOST": address[0], "KUBERNETES_SERVICE_PORT": str(address[1])}
            found["KUBERNETES_SERVICE_PORT_HTTPS"] = str(address[1])
        return found

    def command(
        self,
        container: Mapping[str, Any],
        image: LocalImage,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        run: int,
    ) -> Command:
        """Return the command that starts a container, for its `run`-th run.

        Raises: RefusedUser for root; MissingSource for a mount of a volume that does not exist.
        """
        mounts = self._mounts(container, image, env, run)
        user = self.user(container, image)
        limit = ((container.get("resources") or {}).get("limits") or {}).get("memory")
        command = Command(
            id=f"{container['name']}-{run}",
            argv=list(argv),
            env=dict(env),
            cwd=container.get("workingDir") or image.working_dir or "/",
            uid=user.uid,
            gid=user.gid,
            groups=user.groups,
            log=str(self.log_path(container["name"], run)),
            log_limit=self.options.log_limit,
            memory=Quantity(limit).whole() if limit else 0,
        )
        if not self.namespaces:
            return self._substituted(command, [*mounts, *self._image_copies(image)], container["name"])
        root = self.directory / "roots" / container["name"]
        root.mkdir(exist_ok=True)
        extra = self._surroundings(command, container["name"], user)
        return replace(command, root=str(root), mounts=[*extra, *mounts])

    def start(self, command: Command, changed: Callable[[], None], *, stdin: int | None = None) -> Running:
        """Start a container; None is an empty standard input."""
        return self.supervisor.run(command, () if stdin is None else (stdin,), changed=changed)

    def execute(
        self, command: Command, argv: Sequence[str], *, pid: int, descriptors: Sequence[int], tty: bool = False
    ) -> Running:
        """Run another command in a running container: `pid` is its first process, `descriptors` its three streams."""
        self._commands += 1
        name = f"exec-{self._commands}"
        inside = replace(command, id=name, argv=list(argv), join=pid, log="", memory=0, mounts=(), tty=tty)
        return self.supervisor.run(inside, descriptors)

    def substitute(self, container: Mapping[str, Any], argv: Sequence[str], run: int) -> list[str]:
        """Return a command with the paths of mounts replaced, where there are no mount namespaces."""
        if self.namespaces:
            return list(argv)
        paths = _paths(self.volume_mounts(container, {}, run))
        return [substitute_paths(one, paths) for one in argv]

    def _mounts(self, container: Mapping[str, Any], image: LocalImage, env: Mapping[str, str], run: int) -> list[Mount]:
        exposed = [Mount(path, path, readonly=True) for path in _exposed(image)] if self.namespaces else []
        return [*exposed, *self.volume_mounts(container, env, run)]

    def volume_mounts(self, container: Mapping[str, Any], env: Mapping[str, str], run: int) -> list[Mount]:
        """Return the mounts of a container's volumes and of its termination message.

        Raises: MissingSource for a volume that does not exist.
        """
        found = []
        for one in container.get("volumeMounts") or ():
            source = self._volumes.get(one["name"])
            if source is None:
                raise MissingSource(f'volume "{one["name"]}" of container {container["name"]} does not exist')
            part = one.get("subPath") or _expand_sub_path(one.get("subPathExpr", ""), env)
            if part:
                source = self._sub_path(source, part)
            found.append(Mount(str(source), one["mountPath"].rstrip("/") or "/", one.get("readOnly", False)))
        message = self.message_path(container["name"], run)
        if not message.exists():
            message.touch()
            message.chmod(0o666)
        found.append(Mount(str(message), container.get("terminationMessagePath") or _MESSAGE_PATH))
        return found

    def _sub_path(self, source: Path, part: str) -> Path:
        path = source / part
        if not path.resolve().is_relative_to(source.resolve()):
            raise MissingSource(f"subPath {part!r} must not leave its volume")
        if not path.exists():
            path.mkdir(parents=True)
            self._share(path)
        return path

    def _surroundings(self, command: Command, container: str, user: User) -> list[Mount]:
        """Return mounts for what an image would contain: a working directory, and the user in /etc/passwd."""
        found = []
        if not os.path.isdir(command.cwd):
            found.append(Mount(str(self.private_directory(container)), command.cwd))
        if user.uid is not None and user.gid is not None and (text := passwd_with(user.uid, user.gid)):
            path = self.directory / f"passwd-{user.uid}"
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
            path.chmod(0o644)
            found.append(Mount(str(path), "/etc/passwd", readonly=True))
        return found

    def _image_copies(self, image: LocalImage) -> list[Mount]:
        if os.getuid() != 0:
            return []
        copies = {path: self.options.copies.copy(path) for path in image.paths}
        return [Mount(copy, path) for path, copy in copies.items() if copy != path]

    def _substituted(self, command: Command, mounts: Sequence[Mount], container: str) -> Command:
        paths = _paths(mounts)
        cwd = substitute_paths(command.cwd, paths)
        env = {name: substitute_paths(value, paths) for name, value in command.env.items()}
        if self._write_kubeconfig(kubeconfig := self.directory / f"kubeconfig-{container}", mounts):
            env.setdefault("KUBECONFIG", str(kubeconfig))
        return replace(
            command,
            argv=[substitute_paths(one, paths) for one in command.argv],
            env=env,
            cwd=cwd if os.path.isdir(cwd) else str(self.private_directory(container)),
        )

    def _write_kubeconfig(self, path: Path, mounts: Sequence[Mount]) -> bool:
        server = self.api_proxy.address
        if server is None:
            return False
        account = self._spec.get("serviceAccountName") or "default"
        pair = sign_account(self.options.sign_client, self._pod["metadata"]["namespace"], account)
        return write_kubeconfig(path, mounts, server, pair)


def _size(directory: Path) -> int:
    """Return the size of all files below a directory."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _paths(mounts: Sequence[Mount]) -> dict[str, str]:
    return {one.target: one.source for one in mounts}


def _exposed(image: LocalImage) -> list[str]:
    """Return paths of the host that a container needs: those of the image, of its programs and of this interpreter."""
    programs = [one for one in (*image.command, *image.args, *image.programs.values()) if os.path.isabs(one)]
    every = [*image.paths, sys.prefix, sys.base_prefix, *programs]
    found = dict.fromkeys(os.path.realpath(one) for one in every if os.path.exists(one))
    found |= dict.fromkeys(os.path.abspath(one) for one in every if os.path.exists(one))
    hidden = [one for one in found if one.startswith("/tmp/") or not is_public(one)]
    return [one for one in hidden if not any(one.startswith(f"{other}/") for other in hidden)]


def _expand_sub_path(text: str, env: Mapping[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda match: env.get(match[1], ""), text)
