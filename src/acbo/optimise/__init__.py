"""Choosing interventions: problems, the game, estimates, policies to compare with."""

from __future__ import annotations

from acbo.optimise._baselines import GaussianProcess as GaussianProcess
from acbo.optimise._baselines import Oracle as Oracle
from acbo.optimise._baselines import best_action as best_action
from acbo.optimise._baselines import greedy_correlation as greedy_correlation
from acbo.optimise._baselines import linear_thompson as linear_thompson
from acbo.optimise._baselines import linear_ucb as linear_ucb
from acbo.optimise._baselines import random_policy as random_policy
from acbo.optimise._baselines import round_robin as round_robin
from acbo.optimise._environment import Action as Action
from acbo.optimise._environment import Game as Game
from acbo.optimise._environment import Policy as Policy
from acbo.optimise._environment import Step as Step
from acbo.optimise._environment import View as View
from acbo.optimise._environment import act as act
from acbo.optimise._environment import begin as begin
from acbo.optimise._environment import look as look
from acbo.optimise._environment import play as play
from acbo.optimise._estimates import Belief as Belief
from acbo.optimise._estimates import Effects as Effects
from acbo.optimise._estimates import believed_effects as believed_effects
from acbo.optimise._estimates import effects as effects
from acbo.optimise._estimates import outcome_edges as outcome_edges
from acbo.optimise._estimates import path_effects as path_effects
from acbo.optimise._named import PROBLEMS as PROBLEMS
from acbo.optimise._named import NamedProblem as NamedProblem
from acbo.optimise._named import named_problem as named_problem
from acbo.optimise._problem import Problem as Problem
from acbo.optimise._problem import ProblemPrior as ProblemPrior

__all__ = [
    "PROBLEMS",
    "Action",
    "Belief",
    "Effects",
    "Game",
    "GaussianProcess",
    "NamedProblem",
    "Oracle",
    "Policy",
    "Problem",
    "ProblemPrior",
    "Step",
    "View",
    "act",
    "begin",
    "believed_effects",
    "best_action",
    "effects",
    "greedy_correlation",
    "linear_thompson",
    "linear_ucb",
    "look",
    "named_problem",
    "outcome_edges",
    "path_effects",
    "play",
    "random_policy",
    "round_robin",
]
