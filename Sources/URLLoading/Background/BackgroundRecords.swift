import BackgroundTransfers
import Foundation
import HTTPSemantics
import HTTPTransport
import WireText

/// Conversions between the types of the library and those that leave the process.
extension TransferRequest {
    /// - Parameter cookies: added as a field, unless the request has one.
    init(_ request: URLRequest, cookies: [HTTPCookie] = []) {
        var fields = request.allHTTPHeaderFields ?? [:]
        if request.value(forHTTPHeaderField: "Cookie") == nil, !cookies.isEmpty {
            fields.merge(HTTPCookie.requestHeaderFields(with: cookies)) { own, _ in own }
        }
        self.init(
            url: request.url?.absoluteString ?? "", method: request.httpMethod ?? "GET", fields: fields,
            body: request.httpBody, timeout: request.chosenTimeout, serviceType: request.networkServiceType.rawValue)
        self.permissions.allowsCellular = request.allowsCellularAccess
        self.permissions.allowsExpensive = request.allowsExpensiveNetworkAccess
        self.permissions.allowsConstrained = request.allowsConstrainedNetworkAccess
        self.permissions.requiresDNSSEC = request.requiresDNSSECValidation
    }

    /// `nil` if the URL is not valid.
    package var urlRequest: URLRequest? {
        guard let url = URL(string: self.url) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = self.method
        request.allHTTPHeaderFields = self.fields.isEmpty ? nil : self.fields
        request.httpBody = self.body
        if let timeout = self.timeout, timeout.isFinite { request.timeoutInterval = timeout }
        request.networkServiceType = .init(rawValue: self.serviceType) ?? .default
        request.allowsCellularAccess = self.permissions.allowsCellular
        request.allowsExpensiveNetworkAccess = self.permissions.allowsExpensive
        request.allowsConstrainedNetworkAccess = self.permissions.allowsConstrained
        request.requiresDNSSECValidation = self.permissions.requiresDNSSEC
        return request
    }
}

extension TransferResponse {
    var urlResponse: HTTPURLResponse? {
        URL(string: self.url).flatMap {
            HTTPURLResponse(url: $0, statusCode: self.status, httpVersion: self.version, headerFields: self.fields)
        }
    }
}

extension TransferError {
    /// - Parameter resumeData: of a failed download.
    func urlError(resumeData: Data? = nil) -> URLError {
        var details: [String: Any] = [:]
        if let cancelledReason { details[NSURLErrorBackgroundTaskCancelledReasonKey] = cancelledReason }
        if let resumeData { details[NSURLSessionDownloadTaskResumeData] = resumeData }
        return LoadFailure.error(
            URLError.Code(rawValue: self.code) ?? .unknown, url: self.url.flatMap { URL(string: $0) },
            cause: self.refusesAddresses == true ? ExchangeFailure.notAdmitted : nil, text: self.text, more: details)
    }
}

extension URLError {
    /// Whether none of the server's addresses is permitted.
    package var isAddressRefused: Bool {
        (self.userInfo[NSUnderlyingErrorKey] as? ExchangeFailure) == .notAdmitted
    }
}

extension TransferAttributes {
    init(_ metadata: borrowing TaskMetadata) {
        self.init(
            label: metadata.description, priority: metadata.priority, earliestBegin: metadata.earliestBeginDate,
            expectedToSend: metadata.clientExpectsToSend, expectedToReceive: metadata.clientExpectsToReceive)
    }
}

extension TaskMetadata {
    /// Of a transfer that an earlier program created.
    init(_ transfer: TransferRecord) {
        self.init(identifier: transfer.identifier, request: transfer.originalRequest.urlRequest)
        self.currentRequest = transfer.currentRequest.urlRequest
        self.response = transfer.response?.urlResponse
        self.description = transfer.attributes.label
        self.priority = transfer.attributes.priority
        self.earliestBeginDate = transfer.attributes.earliestBegin
        self.clientExpectsToSend = transfer.attributes.expectedToSend
        self.clientExpectsToReceive = transfer.attributes.expectedToReceive
        self.state = transfer.isSuspended ? .suspended : .running
        self.suspensions = transfer.isSuspended ? 1 : 0
        self.hasBegun = transfer.begun != nil
        self.apply(transfer.counts)
    }

    mutating func apply(_ counts: TransferCounts) {
        self.bytesSent = counts.sent
        self.bytesReceived = counts.received
        self.expectedToSend = counts.totalToSend
        self.expectedToReceive = counts.totalToReceive
    }
}

extension TransferChallenge {
    /// - Parameter sender: of the challenge.
    func challenge(_ proposed: (URLProtectionSpace) -> URLCredential?) -> URLAuthenticationChallenge {
        let space =
            self.isProxy
            ? URLProtectionSpace(
                proxyHost: self.host, port: self.port, type: self.scheme, realm: self.realm,
                authenticationMethod: self.method)
            : URLProtectionSpace(
                host: self.host, port: self.port, protocol: self.scheme, realm: self.realm,
                authenticationMethod: self.method)
        return URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed(space), previousFailureCount: self.failures,
            failureResponse: self.response?.urlResponse, error: nil, sender: ChallengeSender())
    }
}

extension TransferChallengeAnswer {
    init(_ answer: ChallengeAnswer, to challenge: URLAuthenticationChallenge) {
        func credential(_ credential: URLCredential?) -> TransferChallengeAnswer {
            guard let user = credential?.user, let password = credential?.password else { return .withoutCredential }
            return .credential(user: user, password: password)
        }
        switch answer.disposition {
        case .useCredential: self = credential(answer.credential)
        case .performDefaultHandling:
            let proposed = credential(challenge.proposedCredential)
            // The daemon knows the accounts of proxies and redirects, which the program does not.
            self = proposed == .withoutCredential ? .defaultHandling : proposed
        case .rejectProtectionSpace: self = .rejectProtectionSpace
        case .cancelAuthenticationChallenge: self = .cancel
        }
    }
}

extension PartialDownload {
    /// The content of an interrupted download of this process.
    init(_ data: ResumeData) {
        var (tag, date) = (String?.none, String?.none)
        switch data.validator {
        case .entityTag(let value): tag = value
        case .lastModified(let value): date = value
        }
        // The file was not brought to the disk: an empty boot makes only its durable bytes count.
        self.init(entityTag: tag, lastModified: date, durable: data.bytesReceived, total: data.total, boot: "")
    }

    var validator: ResumeValidator? {
        self.entityTag.map(ResumeValidator.entityTag) ?? self.lastModified.map(ResumeValidator.lastModified)
    }
}

extension SessionSettings {
    /// - Throws: for a setting that cannot leave the process.
    init(_ core: SessionCore) throws(URLError) {
        self.init()
        let configuration = core.configuration
        if let problem = Self.problem(of: configuration) {
            throw LoadFailure.error(.unsupportedURL, url: nil, text: "Not possible in background sessions: \(problem).")
        }
        self.requestTimeout = configuration.timeoutIntervalForRequest
        let year = 365.0 * 86_400
        let resource = configuration.timeoutIntervalForResource
        self.resourceTimeout = resource > 0 && resource < year ? resource : year
        for field in core.defaultFields where field.isNamed("user-agent") { self.fields[field.name] = field.value }
        for case (let name, let value) as (String, String) in configuration.httpAdditionalHeaders ?? [:] {
            self.fields[name] = value
        }
        self.connectionsPerHost = configuration.httpMaximumConnectionsPerHost
        self.lowestTLSVersion = configuration.tlsMinimumSupportedProtocolVersion.rawValue
        self.highestTLSVersion = configuration.tlsMaximumSupportedProtocolVersion.rawValue
        self.serviceType = configuration.networkServiceType.rawValue
        self.permissions.allowsCellular = configuration.allowsCellularAccess
        self.permissions.allowsExpensive = configuration.allowsExpensiveNetworkAccess
        self.permissions.allowsConstrained = configuration.allowsConstrainedNetworkAccess
        self.permissions.requiresDNSSEC = configuration.requiresDNSSECValidation
        self.certificateAuthorities = configuration.certificateAuthorities
        self.unixSocketPath = configuration.unixSocketPath
        self.assumesHTTP2 = configuration.assumesHTTP2
        self.permittedTargets = configuration.permittedTargets
        self.resumesUploads = configuration.resumesUploads
        self.multipath = configuration.multipathServiceType.rawValue
        self.proxies = configuration.connectionProxyDictionary.map(Self.proxies)
        if self.proxies == nil, self.unixSocketPath == nil {
            self.proxyVariables = ProxyEnvironment.variables(
                in: configuration.proxyVariables ?? ProcessInfo.processInfo.environment)
        }
        self.isDiscretionary = configuration.isDiscretionary
        self.sendsLaunchEvents = configuration.sessionSendsLaunchEvents
        self.launch = LaunchCommand(configuration.launchCommand)
        let delegate = core.delegate
        self.asksForDelayedRequests =
            delegate.map { $0.mayImplement(.delayedRequest) || $0.mayImplement(.delayedRequestAsync) } ?? false
    }

    private static func problem(of configuration: URLSessionConfiguration) -> String? {
        if !(configuration.protocolClasses ?? []).isEmpty { return "protocolClasses" }
        if configuration.permitsAddress != nil { return "permitsAddress" }
        if !configuration.proxyConfigurations.isEmpty { return "proxyConfigurations; use connectionProxyDictionary" }
        if !configuration.ticketHosts.isEmpty { return "ticketHosts" }
        let proxies = configuration.connectionProxyDictionary ?? [:]
        if Self.proxies(proxies).count < proxies.count { return "a value of connectionProxyDictionary" }
        return nil
    }

    private static func proxies(_ dictionary: [AnyHashable: Any]) -> [String: ProxyValue] {
        var proxies: [String: ProxyValue] = [:]
        for (key, value) in dictionary {
            guard let key = key as? String else { continue }
            switch value {
            case let number as Int: proxies[key] = .number(number)
            case let flag as Bool: proxies[key] = .number(flag ? 1 : 0)
            case let text as String: proxies[key] = .text(text)
            case let url as URL: proxies[key] = .text(url.absoluteString)
            case let list as [String]: proxies[key] = .list(list)
            default: break
            }
        }
        return proxies
    }
}
