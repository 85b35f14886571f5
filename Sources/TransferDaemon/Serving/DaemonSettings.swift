import BackgroundTransfers
import Foundation

/// How a daemon behaves; tests replace what depends on the machine.
package struct DaemonSettings: Sendable {
    /// Base of the delays of transfers that were created while their program ran for launch events only, in seconds.
    package var backgroundDelay = TransferRules.standardBackgroundDelay
    /// How long the daemon stays without a program and without a transfer to carry out.
    package var idleLimit = Duration.seconds(10)
    /// Most transfers that run at a time, of all sessions.
    package var runningLimit = TransferSchedule.runningLimit
    /// Of the machine; called on a thread that may wait.
    package var conditions: @Sendable () -> MachineConditions = { MachineConditions() }
    /// Starts a program; returns whether that succeeded. `nil` never starts one.
    package var launch: (@Sendable (LaunchCommand, _ session: String) -> Bool)?
    package var log: @Sendable (String) -> Void = { _ in }
    package var now: @Sendable () -> Date = { Date() }
    package var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }

    package init() {}
}
