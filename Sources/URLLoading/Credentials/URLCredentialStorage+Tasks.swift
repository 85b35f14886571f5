import Foundation

/// The same for every task: a storage does not tell them apart. Completion handlers are called before the method
/// returns.
extension URLCredentialStorage {
    public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        completionHandler(self.credentials(for: protectionSpace))
    }

    public func credentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) async -> [String: URLCredential]? {
        self.credentials(for: protectionSpace)
    }

    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        self.set(credential, for: protectionSpace)
    }

    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:],
        task: URLSessionTask
    ) {
        self.remove(credential, for: protectionSpace, options: options)
    }

    public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        completionHandler(self.defaultCredential(for: space))
    }

    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        self.defaultCredential(for: space)
    }

    public func setDefaultCredential(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) {
        self.setDefaultCredential(credential, for: protectionSpace)
    }
}
