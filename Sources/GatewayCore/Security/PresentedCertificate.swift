import GatewayConfiguration
import StreamTransport
import Synchronization
import TLSEngine

/// A certificate that the gateway presents to its peers, as it was read.
package struct PresentedCertificate: Sendable {
    /// Seconds before the end of a certificate within which it is reported.
    private static let warningTime: Int64 = 30 * 86_400

    package let file: String
    package let validity: CertificateValidity
    /// The configuration and the path of the value in it that names the file.
    let located: LocatedConfiguration
    let keyPath: ConfigurationKeyPath
    /// Whether a reload does not read it again.
    let needsRestart: Bool

    /// - Parameter now: in seconds since 1970.
    /// - Returns: why peers do not accept the certificate now, or will not soon: in 30 days or, for one that is valid for
    ///   less than 90, in the last third of its time. `nil` if they do.
    package func warning(now: Int64 = Machine.wallClockMilliseconds() / 1000) -> ConfigurationProblem? {
        let rest = self.validity.notAfter - now
        let (expected, found, remedy): (String, String, String)
        if rest <= 0 {
            (expected, found, remedy) = ("now", "one that has expired", ", or check the system's clock")
        } else if self.validity.notBefore > now {
            (expected, found, remedy) = ("now", "one that is not valid yet", ", or check the system's clock")
        } else if rest < min(Self.warningTime, (self.validity.notAfter - self.validity.notBefore) / 3) {
            let date = WallClock.text(milliseconds: self.validity.notAfter * 1000).prefix { $0 != "T" }
            (expected, found, remedy) = ("for longer", "one that expires on \(date)", "")
        } else {
            return nil
        }
        return self.located.problem(
            at: self.keyPath, expected: "a certificate that is valid \(expected)", found: "\(found): \(self.file)",
            remedy: "renew it and \(self.needsRestart ? "restart" : "reload")\(remedy)")
    }
}

extension Gateway {
    /// Those that were read last.
    package var certificates: [PresentedCertificate] { self.state.withLock { $0.certificates } }

    func use(_ certificates: [PresentedCertificate]) {
        self.state.withLock { $0.certificates = certificates }
        self.logCertificates()
    }

    /// Logs a warning for each certificate that peers do not accept now, or will not soon.
    /// - Parameter now: in seconds since 1970.
    package func logCertificates(now: Int64 = Machine.wallClockMilliseconds() / 1000) {
        for warning in self.certificates.compactMap({ $0.warning(now: now) }) {
            self.shared.log.log(warning.description, level: .warning)
        }
    }

    /// Logs these warnings once a day from now on, until the loops stop.
    package func startCertificateReminder() {
        guard let loop = self.loops.first else { return }
        loop.execute { CertificateReminder(self, on: loop).start() }
    }
}

/// The timer retains it. It is on a loop, whose clock needs no descriptors of its own.
private final class CertificateReminder: TimerTarget {
    private let gateway: Gateway
    private let loop: Loop
    private let timer = LoopTimer()

    init(_ gateway: Gateway, on loop: Loop) {
        self.gateway = gateway
        self.loop = loop
    }

    func start() {
        self.loop.arm(self.timer, after: .seconds(86_400), target: self)
    }

    func timerFired(_ timer: LoopTimer) {
        self.gateway.logCertificates()
        self.start()
    }
}
