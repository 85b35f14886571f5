/// Letting time pass.
extension SimulatedNetwork {
    /// Turns that loops may take at one instant before they count as spinning.
    private static let turnsPerInstant = 20_000

    /// Runs for exactly `duration` of virtual time, through idle stretches too.
    /// - Returns: `.timeOver`, `.spinning` or `.stepsUsedUp`.
    @discardableResult
    package func run(for duration: Duration) -> RunOutcome {
        let end = self.now.advanced(by: duration)
        let outcome = self.advance(to: end, by: { $0.nextInstant }, until: { false })
        guard outcome == .idle else { return outcome }
        self.timeline.now = max(self.now, end)
        return .timeOver
    }

    /// Runs until `condition` holds, which is looked at before the first step and after each.
    @discardableResult
    package func run(until condition: () -> Bool, atMost limit: Duration = .seconds(60)) -> RunOutcome {
        self.advance(to: self.now.advanced(by: limit), by: { $0.nextInstant }, until: condition)
    }

    /// Runs until nothing is under way and no loop waits for a deadline.
    @discardableResult
    package func runUntilIdle(atMost limit: Duration = .seconds(3600)) -> RunOutcome {
        self.advance(to: self.now.advanced(by: limit), by: { $0.nextInstant }, until: { false })
    }

    /// Runs until everything under way has arrived and the loops have acted on it, without waiting for anybody's
    /// timeout.
    @discardableResult
    package func settle(atMost limit: Duration = .seconds(60)) -> RunOutcome {
        self.advance(to: self.now.advanced(by: limit), by: { $0.nextTrafficInstant }, until: { false })
    }

    private func advance(
        to end: MonotonicInstant, by next: (SimulatedNetwork) -> MonotonicInstant?, until condition: () -> Bool
    ) -> RunOutcome {
        // Whoever called may have used the loops directly since they last waited.
        for system in self.systems { system.system?.unpark() }
        var turns = 0
        var before = self.now
        while true {
            if condition() { return .conditionMet }
            // Turns cost time, so a busy loop may run over.
            guard self.now <= end else { return .timeOver }
            guard self.stepsTaken < self.stepLimit else { return .stepsUsedUp }
            self.stepsTaken += 1
            if let action = self.timeline.popDue() {
                action()
            } else if let system = self.drawRunnable() {
                turns = self.now == before ? turns + 1 : 1
                before = self.now
                guard turns <= Self.turnsPerInstant else { return .spinning }
                self.giveTurn(to: system)
            } else {
                guard let instant = next(self) else { return .idle }
                guard instant <= end else {
                    self.timeline.now = max(self.now, end)
                    return .timeOver
                }
                self.timeline.now = max(self.now, instant)
            }
        }
    }

    private func drawRunnable() -> SimulatedSystem? {
        let runnable = self.systems.compactMap { $0.system }.filter { $0.isRunnable }
        return runnable.count > 1 ? runnable.randomElement(using: &self.chance) : runnable.first
    }

    private func giveTurn(to system: SimulatedSystem) {
        self.note(.turn, system.number, 0)
        system.takeTurn()
        let cost = self.chance.duration(in: self.faults.turnCost)
        self.timeline.now = self.now.advanced(by: cost)
    }

    private var nextInstant: MonotonicInstant? {
        let deadline = self.systems.compactMap { $0.system?.parkedUntil }.min()
        guard let next = self.timeline.next else { return deadline }
        return deadline.map { min($0, next) } ?? next
    }

    /// Deadlines of loops count here only if they come before something that is under way.
    private var nextTrafficInstant: MonotonicInstant? {
        guard let traffic = self.timeline.nextTraffic, let next = self.nextInstant else { return nil }
        return min(traffic, next)
    }
}
