import GatewayConfiguration
import StreamTransport
import TLSEngine

/// A well-formed configuration that cannot run: a certificate that cannot be read, an address in use.
package struct GatewayPlanError: Error, Hashable, Sendable {
    /// The section of the configuration that cannot run.
    package enum Section: Hashable, Sendable {
        case listener(String, at: ListenAddress? = nil)
        case upstream(String)
        case tokens(String)
        case route(String)
        case control(at: ControlSettings.Address? = nil)
        case cluster
    }

    package enum Cause: Hashable, Sendable {
        case system(SystemError)
        case file(String, SystemError)
        /// The permission bits of a Unix socket cannot be set.
        case mode(path: String, SystemError)
        case tls(TLSFailure)
        /// Keys that tokens cannot be verified with: in words.
        case tokenKeys(String)
        /// A file of targets that has a mistake: in words.
        case targets(String)
        case otherProcessListens
        case otherListener(String)
        case controlPlaneListens
        /// The path of a Unix socket is that of a file of another kind, which is left as it is.
        case otherFile
        case noAddress
        /// The address names a socket that systemd did not pass.
        case socketNotPassed
        /// The REST server failed, or stopped, at its start.
        case server(String)
    }

    /// `nil` for a file, until the section that names it is known.
    package let section: Section?
    package let cause: Cause

    package init(_ cause: Cause, at section: Section? = nil) {
        self.section = section
        self.cause = cause
    }

    package func located(at section: Section) -> GatewayPlanError { GatewayPlanError(self.cause, at: section) }

    /// What to do; empty if there is no advice.
    package var remedy: String {
        switch self.cause {
        case .otherProcessListens: "stop it, or choose another address"
        case .otherFile: "remove it, or choose another address"
        case .otherListener, .controlPlaneListens, .noAddress: "choose another address"
        case .socketNotPassed:
            "start the gateway by its .socket unit, with this FileDescriptorName, or choose another address"
        case .system(let error): self.section?.remedy(listening: error) ?? ""
        case .file, .mode, .tls, .tokenKeys, .targets, .server: ""
        }
    }
}

extension GatewayPlanError.Section {
    /// What to do if the system refuses its address; `nil` if there is no advice.
    fileprivate func remedy(listening error: SystemError) -> String? {
        guard let isSocketFile = self.isSocketFile else { return nil }
        switch error {
        case .addressNotAvailable: return "no network interface has this address: choose another, or * for all"
        case .noSuchFile, .notDirectory: return "create its directory, or choose another path"
        case .accessDenied where isSocketFile: return "check the permissions of its directory"
        case .accessDenied: return "choose a port above 1023, or grant CAP_NET_BIND_SERVICE"
        default: return nil
        }
    }

    /// Whether its address is that of a Unix socket; `nil` without an address.
    private var isSocketFile: Bool? {
        switch self {
        case .listener(_, .unix?), .control(.unix?): true
        case .listener(_, .tcp?), .listener(_, .tcpAny?), .control(.tcp?): false
        case .listener, .control, .upstream, .tokens, .route, .cluster: nil
        }
    }
}

extension ListenAddress {
    fileprivate var isPassed: Bool { if case .adopted = self { true } else { false } }
}

extension GatewayPlanError.Cause {
    /// Why an address cannot be listened on.
    /// - Parameter address: of a listener.
    package init(listening error: SystemError, at address: ListenAddress? = nil) {
        switch error {
        case .noSuchFile where address?.isPassed == true: self = .socketNotPassed
        case .addressInUse: self = .otherProcessListens
        case .notSocket: self = .otherFile
        default: self = .system(error)
        }
    }
}

extension GatewayPlanError: CustomStringConvertible {
    /// Section, cause and remedy in one line.
    package var description: String { self.remedy.isEmpty ? self.summary : "\(self.summary); \(self.remedy)" }

    /// Without the remedy.
    package var summary: String { self.section.map { "\($0): \(self.cause)" } ?? "\(self.cause)" }
}

extension GatewayPlanError.Section: CustomStringConvertible {
    package var description: String {
        switch self {
        case .listener(let name, nil): "listener '\(name)'"
        case .listener(let name, let address?): "listener '\(name)' at \(address)"
        case .upstream(let name): "upstream '\(name)'"
        case .tokens(let name): "tokens '\(name)'"
        case .route(let name): "route '\(name)'"
        case .cluster: "cluster"
        case .control(nil): "control plane"
        case .control(let address?): "control plane at \(address)"
        }
    }
}

extension GatewayPlanError.Cause: CustomStringConvertible {
    package var description: String {
        switch self {
        case .system(let error): "\(error)"
        case .file(let path, let error): "\(path): \(error)"
        case .mode(let path, let error): "mode of \(path): \(error)"
        case .tls(let failure): failure.description
        case .tokenKeys(let text), .targets(let text): text
        case .otherProcessListens: "another process listens here"
        case .controlPlaneListens: "the control plane listens here"
        case .otherListener(let name): "the address is in use by listener '\(name)'"
        case .otherFile: "the file exists and is not a socket"
        case .noAddress: "no address"
        case .socketNotPassed: "systemd passed no such socket"
        case .server(let text): text
        }
    }
}
