import Foundation

/// `URLRequest` as an object that can be changed. Not to be changed by several threads at a time.
open class NSMutableURLRequest: NSURLRequest {
    open override var url: URL? {
        get { self.value.url }
        set { self.value.url = newValue }
    }

    open override var mainDocumentURL: URL? {
        get { self.value.mainDocumentURL }
        set { self.value.mainDocumentURL = newValue }
    }

    open override var cachePolicy: CachePolicy {
        get { self.value.cachePolicy }
        set { self.value.cachePolicy = newValue }
    }

    open override var timeoutInterval: TimeInterval {
        get { self.value.timeoutInterval }
        set { self.value.timeoutInterval = newValue }
    }

    open override var networkServiceType: NetworkServiceType {
        get { self.value.networkServiceType }
        set { self.value.networkServiceType = newValue }
    }

    open override var allowsCellularAccess: Bool {
        get { self.value.allowsCellularAccess }
        set { self.value.allowsCellularAccess = newValue }
    }

    open override var allowsExpensiveNetworkAccess: Bool {
        get { self.value.allowsExpensiveNetworkAccess }
        set { self.value.allowsExpensiveNetworkAccess = newValue }
    }

    open override var allowsConstrainedNetworkAccess: Bool {
        get { self.value.allowsConstrainedNetworkAccess }
        set { self.value.allowsConstrainedNetworkAccess = newValue }
    }

    open override var attribution: Attribution {
        get { self.value.attribution }
        set { self.value.attribution = newValue }
    }

    open override var httpMethod: String? {
        get { self.value.httpMethod }
        set { self.value.httpMethod = newValue }
    }

    open override var allHTTPHeaderFields: [String: String]? {
        get { self.value.allHTTPHeaderFields }
        set { self.value.allHTTPHeaderFields = newValue }
    }

    open override var httpBody: Data? {
        get { self.value.httpBody }
        set { self.value.httpBody = newValue }
    }

    open override var httpBodyStream: InputStream? {
        get { self.value.httpBodyStream }
        set { self.value.httpBodyStream = newValue }
    }

    open override var httpShouldHandleCookies: Bool {
        get { self.value.httpShouldHandleCookies }
        set { self.value.httpShouldHandleCookies = newValue }
    }

    open override var httpShouldUsePipelining: Bool {
        get { self.value.httpShouldUsePipelining }
        set { self.value.httpShouldUsePipelining = newValue }
    }

    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.value.setValue(value, forHTTPHeaderField: field)
    }

    open func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.value.addValue(value, forHTTPHeaderField: field)
    }
}
