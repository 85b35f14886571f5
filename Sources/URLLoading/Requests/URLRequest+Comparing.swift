import Foundation

extension URLRequest: Hashable {
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.url == rhs.url && lhs.mainDocumentURL == rhs.mainDocumentURL && lhs.httpMethod == rhs.httpMethod
            && lhs.cachePolicy == rhs.cachePolicy && lhs.timeoutInterval == rhs.timeoutInterval
            && lhs.networkServiceType == rhs.networkServiceType && lhs.attribution == rhs.attribution
            && lhs.cookiePartitionIdentifier == rhs.cookiePartitionIdentifier && lhs.switches == rhs.switches
            && lhs.fields == rhs.fields && lhs.body == rhs.body
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.url)
        hasher.combine(self.mainDocumentURL)
        hasher.combine(self.httpMethod)
        hasher.combine(self.cachePolicy)
        hasher.combine(self.timeoutInterval)
        hasher.combine(self.fields)
        hasher.combine(self.body)
    }

    private var switches: [Bool] {
        [
            self.allowsCellularAccess, self.allowsExpensiveNetworkAccess, self.allowsConstrainedNetworkAccess,
            self.allowsUltraConstrainedNetworkAccess, self.assumesHTTP3Capable, self.requiresDNSSECValidation,
            self.httpShouldHandleCookies, self.httpShouldUsePipelining,
        ]
    }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { self.url?.description ?? "url: nil" }
    public var debugDescription: String { self.description }
}

extension URLRequest: CustomReflectable {
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("url", self.url as Any), ("cachePolicy", self.cachePolicy.rawValue),
            ("timeoutInterval", self.timeoutInterval), ("mainDocumentURL", self.mainDocumentURL as Any),
            ("networkServiceType", self.networkServiceType), ("allowsCellularAccess", self.allowsCellularAccess),
            ("httpMethod", self.httpMethod as Any), ("allHTTPHeaderFields", self.allHTTPHeaderFields as Any),
            ("httpBody", self.httpBody as Any), ("httpBodyStream", self.httpBodyStream as Any),
            ("httpShouldHandleCookies", self.httpShouldHandleCookies),
            ("httpShouldUsePipelining", self.httpShouldUsePipelining),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}
