import Foundation
import TLSEngine
import Testing
import URLLoading

/// The HTTP version, route and encryption of a session's connections.
struct ConnectionVariant: Sendable, CustomTestStringConvertible {
    enum Route: String, CaseIterable {
        case direct, proxy, socks
    }

    let version: WebProtocol
    let route: Route
    let isSecure: Bool

    static let all: [Self] = WebProtocol.allCases.flatMap { version in
        Route.allCases.flatMap { route in
            [false, true].map { Self(version: version, route: route, isSecure: $0) }
        }
    }

    /// That of sessions and servers of tests that do not choose one. The tests run once for each.
    static let current: Self = {
        let environment = ProcessInfo.processInfo.environment
        let route = environment["SLUICE_TEST_ROUTE"].flatMap { Route(rawValue: $0) } ?? .direct
        return Self(version: .current, route: route, isSecure: environment["SLUICE_TEST_TLS"] == "yes")
    }()

    var testDescription: String { "\(self.version.rawValue) \(self.route) \(self.isSecure ? "TLS" : "plain")" }

    func server(_ answers: [String: Answer] = [:]) async throws -> WebServer {
        let tls = try self.isSecure ? Certificates.server { $0.applicationProtocols = [self.version.rawValue] } : nil
        return try await WebServer(tls: tls, answers)
    }

    /// Leads all connections to a `RelayProxy`.
    func settings(_ port: Int, at host: String = "127.0.0.1") -> [AnyHashable: Any] {
        let prefixes: [String] =
            switch self.route {
            case .direct: []
            case .proxy: ["HTTP", "HTTPS"]
            case .socks: ["SOCKS"]
            }
        return prefixes.reduce(into: [:]) { settings, prefix in
            settings["\(prefix)Enable"] = 1
            settings["\(prefix)Proxy"] = host
            settings["\(prefix)Port"] = port
        }
    }
}

extension Trait where Self == ConditionTrait {
    /// The test is about the bytes or the connections of HTTP/1.1.
    static var onlyWithHTTP11: ConditionTrait {
        .enabled(if: WebProtocol.current == .http1, "HTTP/2 has nothing like it")
    }

    /// A proxy is between the client and the server.
    static func onlyDirect(_ reason: Comment) -> ConditionTrait {
        .enabled(if: ConnectionVariant.current.route == .direct, reason)
    }

    /// A request in absolute form gets the proxy's response where there is no connection to the server.
    static var exceptForwarded: ConditionTrait {
        let current = ConnectionVariant.current
        return .enabled(
            if: current.route != .proxy || current.version == .http2,
            "a proxy that forwards requests answers in place of a server that it cannot reach")
    }

    /// The server of the test has TLS.
    static func onlyPlain(_ reason: Comment) -> ConditionTrait {
        .enabled(if: !ConnectionVariant.current.isSecure, reason)
    }

    /// The test does not depend on the route and the encryption of the run.
    static var choosesItsConnections: ConditionTrait {
        let current = ConnectionVariant.current
        return .enabled(
            if: current.route == .direct && !current.isSecure, "it chooses the proxies and the encryption itself")
    }
}

extension URLSessionConfiguration {
    /// Without shared stores and without the proxies of the environment. Connections are those of the current variant.
    static var test: URLSessionConfiguration {
        let variant = ConnectionVariant.current
        let configuration = URLSessionConfiguration.ephemeral
        configuration.assumesHTTP2 = variant.version == .http2
        configuration.timeoutIntervalForRequest = 120
        configuration.connectionProxyDictionary = [:]
        if variant.route != .direct, let port = try? RelayProxy.current.get().port {
            configuration.connectionProxyDictionary = variant.settings(port)
        }
        if variant.isSecure { configuration.certificateAuthorities = try? Certificates.currentAuthority() }
        return configuration
    }
}

extension URLAuthenticationChallenge {
    /// Whether it is about the certificate that servers have in variants with TLS only.
    var isOfTheVariant: Bool {
        guard ConnectionVariant.current.isSecure else { return false }
        let certificate = self.protectionSpace.serverTrust?.certificates.first
        return certificate != nil && certificate == (try? Certificates.currentDER())
    }
}
