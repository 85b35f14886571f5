import BackgroundTransfers
import Foundation
import URLLoading

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
    /// Makes a session's `permittedTargets` a rule for its connections: whether one may be made to an address on behalf of a
    /// host. Permits nothing unless it is set: the library does not know the words.
    package var permission: AddressPermission.Maker = { _ in { _, _ in false } }
    /// Makes final changes to the configurations of the sessions that carry out transfers.
    package var prepare: @Sendable (URLSessionConfiguration) -> Void = { _ in }
    package var log: @Sendable (String) -> Void = { _ in }
    package var now: @Sendable () -> Date = { Date() }
    package var jitter: @Sendable () -> Double = { Double.random(in: 0...1) }

    package init() {}
}
