import BackgroundTransfers
import Foundation
import SimulatedNetwork
import StreamTransport
import Testing
import URLLoading

@Suite("Configurations of sessions")
struct URLSessionConfigurationTests {
    @Test func configurationHasFoundationsDefaults() {
        let configuration = URLSessionConfiguration.default
        #expect(configuration.requestCachePolicy == .useProtocolCachePolicy && configuration.identifier == nil)
        #expect(configuration.timeoutIntervalForRequest == 60 && configuration.timeoutIntervalForResource == 604_800)
        #expect(configuration.httpMaximumConnectionsPerHost == 6 && configuration.httpAdditionalHeaders == nil)
        #expect(
            configuration.httpCookieAcceptPolicy == .onlyFromMainDocumentDomain && configuration.httpShouldSetCookies)
        #expect(configuration.httpCookieStorage === HTTPCookieStorage.shared)
        #expect(configuration.urlCredentialStorage === URLCredentialStorage.shared)
        #expect(configuration.urlCache === URLCache.shared && !configuration.waitsForConnectivity)
        #expect(configuration.allowsCellularAccess && configuration.allowsExpensiveNetworkAccess)
        #expect(configuration.allowsConstrainedNetworkAccess && configuration.sessionSendsLaunchEvents)
        #expect(!configuration.isDiscretionary && configuration.sharedContainerIdentifier == nil)
        #expect(configuration.tlsMinimumSupportedProtocolVersion == .TLSv12)
        #expect(configuration.tlsMaximumSupportedProtocolVersion == .TLSv13 && !configuration.enablesEarlyData)
        #expect(configuration.multipathServiceType == .none && configuration.usesClassicLoadingMode)
        #expect(configuration.connectionProxyDictionary == nil && !configuration.httpShouldUsePipelining)
        #expect(URLSessionConfiguration.default !== configuration)
    }

    @Test func ephemeralConfigurationsHaveTheirOwnStores() throws {
        let one = URLSessionConfiguration.ephemeral
        let other = URLSessionConfiguration.ephemeral
        let cookies = try #require(one.httpCookieStorage)
        #expect(cookies !== other.httpCookieStorage && cookies !== HTTPCookieStorage.shared)
        #expect(one.urlCache !== other.urlCache && one.urlCache?.diskCapacity == 0)
        #expect(try #require(one.urlCache).memoryCapacity > 0)
        #expect(one.urlCredentialStorage !== other.urlCredentialStorage)
    }

    @Test func backgroundConfigurationHasItsIdentifier() {
        let configuration = URLSessionConfiguration.background(withIdentifier: "id")
        #expect(configuration.identifier == "id" && configuration.urlCache == nil)
    }

    @Test func configurationIsCopiedWithEveryProperty() throws {
        let changed = URLSessionConfiguration.background(withIdentifier: "id")
        changed.requestCachePolicy = .returnCacheDataDontLoad
        changed.timeoutIntervalForRequest = 1
        changed.timeoutIntervalForResource = 2
        changed.networkServiceType = .video
        changed.allowsCellularAccess = false
        changed.allowsExpensiveNetworkAccess = false
        changed.allowsConstrainedNetworkAccess = false
        changed.allowsUltraConstrainedNetworkAccess = false
        changed.requiresDNSSECValidation = true
        changed.waitsForConnectivity = true
        changed.isDiscretionary = true
        changed.sharedContainerIdentifier = "c"
        changed.sessionSendsLaunchEvents = false
        changed.resumesUploads = false
        changed.deletesCancelledUploads = false
        changed.connectionProxyDictionary = ["HTTPEnable": 1]
        changed.proxyConfigurations = [ProxyConfiguration(socksv5Proxy: .hostPort(host: "p.example", port: .socks))]
        changed.tlsMinimumSupportedProtocolVersion = .TLSv13
        changed.tlsMaximumSupportedProtocolVersion = .TLSv12
        changed.enablesEarlyData = true
        changed.httpShouldUsePipelining = true
        changed.httpShouldSetCookies = false
        changed.httpCookieAcceptPolicy = .never
        changed.httpAdditionalHeaders = ["A": "b"]
        changed.httpMaximumConnectionsPerHost = 2
        changed.httpCookieStorage = nil
        changed.urlCredentialStorage = nil
        changed.urlCache = nil
        changed.shouldUseExtendedBackgroundIdleMode = true
        changed.protocolClasses = nil
        changed.multipathServiceType = .aggregate
        changed.usesClassicLoadingMode = false
        changed.unixSocketPath = "/run/a"
        changed.assumesHTTP2 = true
        changed.certificateAuthorities = Data([1])
        changed.ticketHosts = [".example.org"]
        changed.permitsAddress = { _, _ in false }
        changed.permittedTargets = ["public"]
        changed.resolve = { _, _, answer in answer(.success([])) }
        changed.resolveAuthenticated = changed.resolve
        changed.launchCommand = .current
        changed.transferDaemonPath = "/usr/local/bin/sluice"
        changed.proxyVariables = ["all_proxy": ""]
        changed.transferFolders = TransferFolders(runtime: "/run/a", state: "/state")
        changed.loop = Loop(system: SimulatedNetwork(seed: 1).makeSystem())
        let copy = try #require(changed.copy() as? URLSessionConfiguration)
        let plain = URLSessionConfiguration.default
        let values = Self.values(changed)
        #expect(Self.values(copy) == values && values.count == 46)
        // All values differ from the defaults, so that a property that is not copied is detected.
        for (value, standard) in zip(values, Self.values(plain)) { #expect(value != standard) }
        copy.timeoutIntervalForRequest = 9
        #expect(changed.timeoutIntervalForRequest == 1)
    }

    private static func values(_ configuration: URLSessionConfiguration) -> [String] {
        let values: [(String, Any)] = Mirror(reflecting: configuration).children.map { ($0.label ?? "", $0.value) }
        return values.map { "\($0.0) \($0.1)" }.sorted()
    }

    @Test func olderTLSPropertiesNameTheSameVersions() {
        let configuration = URLSessionConfiguration.default
        let older: any DeprecatedProperties = configuration
        #expect(older.tlsMinimumSupportedProtocol == .tlsProtocol12)
        #expect(older.tlsMaximumSupportedProtocol == .tlsProtocol13)
        let versions: [(SSLProtocol, tls_protocol_version_t)] = [
            (.tlsProtocol1, .TLSv10), (.tlsProtocol11, .TLSv11), (.tlsProtocol12, .TLSv12), (.tlsProtocol13, .TLSv13),
        ]
        for (old, new) in versions {
            older.tlsMinimumSupportedProtocol = old
            #expect(configuration.tlsMinimumSupportedProtocolVersion == new)
            older.tlsMaximumSupportedProtocol = old
            #expect(configuration.tlsMaximumSupportedProtocolVersion == new)
            #expect(older.tlsMinimumSupportedProtocol == old && older.tlsMaximumSupportedProtocol == old)
        }
        older.tlsMinimumSupportedProtocol = .sslProtocolUnknown
        older.tlsMaximumSupportedProtocol = .sslProtocolUnknown
        #expect(older.tlsMinimumSupportedProtocol == .tlsProtocol13)
        configuration.tlsMaximumSupportedProtocolVersion = .DTLSv12
        #expect(older.tlsMaximumSupportedProtocol == .sslProtocolUnknown)
    }

    @Test func configurationEnumsHaveFoundationsRawValues() {
        let multipath: [URLSessionConfiguration.MultipathServiceType] = [.none, .handover, .interactive, .aggregate]
        #expect(multipath.map(\.rawValue) == [0, 1, 2, 3])
        let tls: [tls_protocol_version_t] = [.TLSv10, .TLSv11, .TLSv12, .TLSv13]
        #expect(tls.map(\.rawValue) == [0x0301, 0x0302, 0x0303, 0x0304])
        let responses: [URLSessionResponseDisposition] = [.cancel, .allow, .becomeDownload, .becomeStream]
        #expect(responses.map(\.rawValue) == [0, 1, 2, 3])
        let challenges: [URLSessionAuthChallengeDisposition] = [
            .useCredential, .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace,
        ]
        #expect(challenges.map(\.rawValue) == [0, 1, 2, 3])
        let delays: [URLSessionDelayedRequestDisposition] = [.continueLoading, .useNewRequest, .cancel]
        #expect(delays.map(\.rawValue) == [0, 1, 2])
        let states: [URLSessionTaskState] = [.running, .suspended, .canceling, .completed]
        #expect(states.map(\.rawValue) == [0, 1, 2, 3])
        #expect(
            [NSURLSessionTaskPriorityLow, NSURLSessionTaskPriorityDefault, NSURLSessionTaskPriorityHigh] == [
                0.25, 0.5, 0.75,
            ])
        #expect(NSURLSessionTransferSizeUnknown == -1)
    }
}

/// Deprecated properties, used without a warning.
private protocol DeprecatedProperties: AnyObject {
    var tlsMinimumSupportedProtocol: SSLProtocol { get set }
    var tlsMaximumSupportedProtocol: SSLProtocol { get set }
}

extension URLSessionConfiguration: DeprecatedProperties {}
