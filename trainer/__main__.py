"""`torchrun -m trainer CONFIG`: one rank of the trainer."""

import argparse
import logging
import os
import socket
import sys
import threading
from collections.abc import Mapping, Sequence

from protos.arguments import LAST_PORT, at_least, port
from protos.boundary import guarded, leave

_PACKAGES = ("protos", "stream", "features", "recmodels", "checkpointer", "trainer")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="trainer", description="One rank of the trainer, started by torchrun.")
    parser.add_argument("config", metavar="CONFIG")
    parser.add_argument("--take-over", action="store_true", help="fence another trainer of this model directory")
    parser.add_argument("--standby", action="store_true", help="be ready, and wait until the other trainer is gone")
    parser.add_argument(
        "--metrics-port", type=port, default=0, help="Prometheus port of rank 0; rank n adds n; 0: none"
    )
    parser.add_argument("--metrics-host", default="127.0.0.1", help="the address that it listens on")
    parser.add_argument(
        "--device", choices=["auto", "cpu", "cuda"], default="auto", help="default: CUDA where this machine has it"
    )
    parser.add_argument(
        "--threads", type=at_least(0), default=0, help="of this rank's kernels (default: cores / local ranks)"
    )
    parser.add_argument(
        "--replay-cuts", default="", metavar="MODEL_DIR", help="train the batches that its log recorded"
    )
    parser.add_argument("--traceback", action="store_true", help="show the traceback of an error, to report it")
    parser.add_argument("--log-level", choices=["debug", "info", "warning", "error"], help="default: info")
    return parser


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Train and return the exit code; an error becomes one line on stderr."""
    parser = _parser()
    args = parser.parse_args(arguments)
    last = args.metrics_port + int(environment.get("WORLD_SIZE", "1")) - 1
    if args.metrics_port and last > LAST_PORT:
        parser.error(f"argument --metrics-port: the last rank would listen on {last}: the last port is {LAST_PORT}")
    return guarded(
        lambda: _train(args, environment), program="trainer", errors=sys.stderr, show_traceback=args.traceback
    )


def _train(args: argparse.Namespace, environment: Mapping[str, str]) -> int:
    rank, world = int(environment.get("RANK", "0")), int(environment.get("WORLD_SIZE", "1"))
    # Libraries greet on the root logger by the dozen: no news for who runs a trainer.
    logging.basicConfig(
        level="WARNING",
        format=f"%(asctime)s %(levelname)s rank={rank} %(name)s %(message)s",
        stream=sys.stderr,
    )
    level = args.log_level or environment.get("HEADRACE_LOG_LEVEL", "info")
    for package in _PACKAGES:
        logging.getLogger(package).setLevel(level.upper())
    for noisy in ("py.warnings", "torchrec", "torch.fx", "torch.distributed"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    logging.getLogger("trainer").info("stage=importing")
    # Importing takes seconds: a standby is worth having because it has done that before it waits.
    from checkpointer.faults_kill import faults_from
    from protos.checked import load_checked
    from trainer.devices import Machine, choose
    from trainer.launch import Launch
    from trainer.run import stopping_on_signals, train
    from trainer.workers import Rank

    local_rank, local_world = (int(environment.get(name, "0")) for name in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    device = choose(args.device, Machine.found(), local_rank=local_rank, local_world=local_world)
    stop = threading.Event()
    launch = Launch(
        rank=Rank(rank=rank, world_size=world),
        device=device,
        host=f"{socket.gethostname()} pid {os.getpid()}",
        take_over=args.take_over,
        standby=args.standby,
        metrics_port=args.metrics_port,
        metrics_host=args.metrics_host,
        threads=args.threads or _threads(environment),
        replay_cuts=args.replay_cuts,
        config_path=args.config,
        faults=faults_from(environment.get("HEADRACE_FAULT", "")),
    )
    try:
        with stopping_on_signals(stop):
            train(load_checked(args.config, notices=rank == 0, device=device.type), launch, stop)
    except KeyboardInterrupt:
        logging.getLogger("trainer").info("stopped while waiting for the other trainer")
    return 0


def _threads(environment: Mapping[str, str]) -> int:
    """The share of one rank in the cores of this machine; 0 where OMP_NUM_THREADS says it."""
    if "OMP_NUM_THREADS" in environment:
        return 0
    return max(1, len(os.sched_getaffinity(0)) // int(environment.get("LOCAL_WORLD_SIZE", "1")))


if __name__ == "__main__":
    # Before torch is imported: OpenMP's threads otherwise spin while they wait, and where other processes want the
    # cores, as the publisher does, a step then takes ten times as long.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    logging.captureWarnings(True)
    leave(run(sys.argv[1:], os.environ))
