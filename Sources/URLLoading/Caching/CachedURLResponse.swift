import Foundation

/// A response with its content, as a cache keeps it. It does not change once made.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let answer: URLResponse
    private let content: Data
    private let notes: [AnyHashable: Any]?
    private let policy: URLCache.StoragePolicy
    /// `nil` for a response that the program made: its age counts from when it is stored, or from its own `Date`.
    package private(set) var exchange: CachedExchange?

    open class var supportsSecureCoding: Bool { true }

    /// May be kept in memory and on disk.
    public init(response: URLResponse, data: Data) {
        self.answer = response
        self.content = data
        self.notes = nil
        self.policy = .allowed
        super.init()
    }

    /// - Parameter userInfo: goes to disk where it consists of what property lists hold, under keys that are texts.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
    ) {
        self.answer = response
        self.content = data
        self.notes = userInfo
        self.policy = storagePolicy
        super.init()
    }

    package convenience init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy,
        exchange: CachedExchange?
    ) {
        self.init(response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy)
        self.exchange = exchange
    }

    /// Inherited by a subclass that overrides both designated initializers.
    public required convenience init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding,
            let response = coder.decodeObject(of: [URLResponse.self, HTTPURLResponse.self], forKey: "response")
                as? URLResponse,
            let data = coder.decodeObject(of: NSData.self, forKey: "data")
        else { return nil }
        let policy = UInt(exactly: coder.decodeInt64(forKey: "storagePolicy"))
        self.init(
            response: response, data: Data(referencing: data), userInfo: nil,
            storagePolicy: policy.flatMap(URLCache.StoragePolicy.init) ?? .notAllowed)
    }

    open func encode(with coder: NSCoder) {
        coder.encode(self.answer, forKey: "response")
        coder.encode(NSData(data: self.content), forKey: "data")
        coder.encode(Int64(self.policy.rawValue), forKey: "storagePolicy")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var response: URLResponse { self.answer }
    /// Decoded of its content codings.
    open var data: Data { self.content }
    open var userInfo: [AnyHashable: Any]? { self.notes }
    open var storagePolicy: URLCache.StoragePolicy { self.policy }

    /// `userInfo` does not count: what is in it need not be comparable.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CachedURLResponse else { return false }
        return other === self
            || other.answer == self.answer && other.content == self.content && other.policy == self.policy
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.answer)
        hasher.combine(self.content)
        hasher.combine(self.policy)
        return hasher.finalize()
    }
}
