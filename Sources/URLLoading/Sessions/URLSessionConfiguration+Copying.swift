extension URLSessionConfiguration {
    func copyLoading(to copy: URLSessionConfiguration) {
        copy.requestCachePolicy = self.requestCachePolicy
        copy.timeoutIntervalForRequest = self.timeoutIntervalForRequest
        copy.timeoutIntervalForResource = self.timeoutIntervalForResource
        copy.tlsMinimumSupportedProtocolVersion = self.tlsMinimumSupportedProtocolVersion
        copy.tlsMaximumSupportedProtocolVersion = self.tlsMaximumSupportedProtocolVersion
        copy.enablesEarlyData = self.enablesEarlyData
        copy.httpShouldUsePipelining = self.httpShouldUsePipelining
        copy.httpShouldSetCookies = self.httpShouldSetCookies
        copy.httpCookieAcceptPolicy = self.httpCookieAcceptPolicy
        copy.httpAdditionalHeaders = self.httpAdditionalHeaders
        copy.httpMaximumConnectionsPerHost = self.httpMaximumConnectionsPerHost
        copy.protocolClasses = self.protocolClasses
        copy.usesClassicLoadingMode = self.usesClassicLoadingMode
    }

    func copyAccess(to copy: URLSessionConfiguration) {
        copy.networkServiceType = self.networkServiceType
        copy.allowsCellularAccess = self.allowsCellularAccess
        copy.allowsExpensiveNetworkAccess = self.allowsExpensiveNetworkAccess
        copy.allowsConstrainedNetworkAccess = self.allowsConstrainedNetworkAccess
        copy.allowsUltraConstrainedNetworkAccess = self.allowsUltraConstrainedNetworkAccess
        copy.requiresDNSSECValidation = self.requiresDNSSECValidation
        copy.waitsForConnectivity = self.waitsForConnectivity
        copy.isDiscretionary = self.isDiscretionary
        copy.sharedContainerIdentifier = self.sharedContainerIdentifier
        copy.sessionSendsLaunchEvents = self.sessionSendsLaunchEvents
        copy.connectionProxyDictionary = self.connectionProxyDictionary
        copy.shouldUseExtendedBackgroundIdleMode = self.shouldUseExtendedBackgroundIdleMode
        copy.multipathServiceType = self.multipathServiceType
        copy.unixSocketPath = self.unixSocketPath
        copy.certificateAuthorities = self.certificateAuthorities
        copy.permitsAddress = self.permitsAddress
        copy.resolve = self.resolve
    }
}

extension URLSessionConfiguration {
    /// How several networks are used at a time.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }

    /// `tlsMinimumSupportedProtocolVersion` in older words; an unknown version changes nothing.
    @available(*, deprecated, renamed: "tlsMinimumSupportedProtocolVersion")
    public var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(self.tlsMinimumSupportedProtocolVersion) }
        set { self.tlsMinimumSupportedProtocolVersion = newValue.version ?? self.tlsMinimumSupportedProtocolVersion }
    }

    /// `tlsMaximumSupportedProtocolVersion` in older words; an unknown version changes nothing.
    @available(*, deprecated, renamed: "tlsMaximumSupportedProtocolVersion")
    public var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(self.tlsMaximumSupportedProtocolVersion) }
        set { self.tlsMaximumSupportedProtocolVersion = newValue.version ?? self.tlsMaximumSupportedProtocolVersion }
    }
}
