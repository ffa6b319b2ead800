"""How rows and time come in: conversion to physical columns, event time, slack, lateness,
clocks."""
