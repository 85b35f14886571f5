import BackgroundTransfers
import Foundation
import URLLoading

/// An event of an attempt, reported to the daemon. From any thread.
package enum AttemptEvent: Sendable {
    /// The head of a response, whose content is held back until `proceed` is called.
    /// - Parameters:
    ///   - resumedAt: bytes kept from earlier attempts; `nil` if the transfer is none that is continued.
    case response(
        TransferResponse, PartialDownload?, resumedAt: Int64?, total: Int64, proceed: @Sendable (Bool) -> Void)
    case counts(TransferCounts)
    /// The upload can be continued from this data by a later attempt, or from none.
    case uploadNamed(Data?)
    /// So many bytes of the download's file are on the disk.
    case durable(Int64)
    /// The attempt is over. Sent once.
    case ended(AttemptEnd)
}

/// Which errors are the network's, so that a later attempt may succeed.
package enum TransientErrors {
    private static let codes: Set<URLError.Code> = [
        .timedOut, .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed, .networkConnectionLost,
        .notConnectedToInternet, .internationalRoamingOff, .callIsActive, .dataNotAllowed, .resourceUnavailable,
    ]

    package static func contains(_ code: URLError.Code) -> Bool { self.codes.contains(code) }

    /// Descriptors that are missing now may be there later; an address that is not permitted stays so.
    static func contains(_ error: any Error) -> Bool {
        switch error {
        case let error as URLError: self.contains(error.code) && !error.isAddressRefused
        case let error as POSIXError: error.code == .EMFILE || error.code == .ENFILE
        default: false
        }
    }
}

extension TransferError {
    init(_ error: any Error, url: String) {
        guard let error = error as? URLError else {
            self.init(code: URLError.Code.unknown.rawValue, text: "\(error)", url: url)
            return
        }
        self.init(
            code: error.code.rawValue, text: error.localizedDescription,
            url: error.failingURL?.absoluteString ?? url)
        if error.isAddressRefused { self.refusesAddresses = true }
    }
}

extension TransferResponse {
    init?(_ response: URLResponse) {
        guard let response = response as? HTTPURLResponse, let url = response.url else { return nil }
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String { fields[name] = value }
        }
        self.init(
            url: url.absoluteString, status: response.statusCode, version: response.httpVersion ?? "HTTP/1.1",
            fields: fields)
    }
}

extension TransferChallenge {
    init(_ challenge: URLAuthenticationChallenge) {
        let space = challenge.protectionSpace
        self.init(
            host: space.host, port: space.port, scheme: space.isProxy() ? space.proxyType : space.protocol,
            realm: space.realm, method: space.authenticationMethod, isProxy: space.isProxy(),
            failures: challenge.previousFailureCount)
        self.response = challenge.failureResponse.flatMap { TransferResponse($0) }
    }
}

extension URLSessionConfiguration {
    /// The configuration of the session that carries out transfers: without cookies, credentials and cache, which are the
    /// program's.
    convenience init(_ settings: SessionSettings) {
        self.init()
        self.httpCookieStorage = nil
        self.urlCredentialStorage = nil
        self.urlCache = nil
        self.timeoutIntervalForRequest = settings.requestTimeout
        self.timeoutIntervalForResource = settings.resourceTimeout
        // A transfer without a network continues as soon as there is one.
        self.waitsForConnectivity = true
        self.httpAdditionalHeaders = settings.fields
        self.httpMaximumConnectionsPerHost = settings.connectionsPerHost
        self.tlsMinimumSupportedProtocolVersion = .init(rawValue: settings.lowestTLSVersion) ?? .TLSv12
        self.tlsMaximumSupportedProtocolVersion = .init(rawValue: settings.highestTLSVersion) ?? .TLSv13
        self.networkServiceType = .init(rawValue: settings.serviceType) ?? .default
        self.allowsCellularAccess = settings.permissions.allowsCellular
        self.allowsExpensiveNetworkAccess = settings.permissions.allowsExpensive
        self.allowsConstrainedNetworkAccess = settings.permissions.allowsConstrained
        self.requiresDNSSECValidation = settings.permissions.requiresDNSSEC
        self.certificateAuthorities = settings.certificateAuthorities
        self.unixSocketPath = settings.unixSocketPath
        self.assumesHTTP2 = settings.assumesHTTP2
        if let resumes = settings.resumesUploads { self.resumesUploads = resumes }
        // An attempt that is stopped is continued by another one, perhaps of another daemon.
        self.deletesCancelledUploads = false
        self.multipathServiceType = settings.multipath.flatMap { MultipathServiceType(rawValue: $0) } ?? .none
        self.proxyVariables = settings.proxyVariables
        self.connectionProxyDictionary = settings.proxies.map { proxies in
            var dictionary: [AnyHashable: Any] = [:]
            for (key, value) in proxies {
                switch value {
                case .number(let number): dictionary[key] = number
                case .text(let text): dictionary[key] = text
                case .list(let list): dictionary[key] = list
                }
            }
            return dictionary
        }
    }
}
