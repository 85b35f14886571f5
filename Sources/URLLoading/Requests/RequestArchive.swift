import Foundation

/// A request in an archive. A body that is a stream is left out: it cannot be read twice.
enum RequestArchive {
    static func write(_ request: URLRequest, to coder: NSCoder) {
        coder.encode(request.url.map { NSURL(string: $0.absoluteString) } ?? nil, forKey: "url")
        coder.encode(
            request.mainDocumentURL.map { NSURL(string: $0.absoluteString) } ?? nil, forKey: "mainDocumentURL")
        coder.encode(Int64(request.cachePolicy.rawValue), forKey: "cachePolicy")
        if let timeout = request.chosenTimeout { coder.encode(timeout, forKey: "timeoutInterval") }
        coder.encode(Int64(request.networkServiceType.rawValue), forKey: "networkServiceType")
        coder.encode(request.allowsCellularAccess, forKey: "allowsCellularAccess")
        coder.encode(request.httpShouldHandleCookies, forKey: "httpShouldHandleCookies")
        coder.encode(request.httpMethod.map { NSString(string: $0) }, forKey: "httpMethod")
        if let fields = request.allHTTPHeaderFields {
            let pairs = fields.sorted { $0.key < $1.key }.flatMap {
                [NSString(string: $0.key), NSString(string: $0.value)]
            }
            coder.encode(NSArray(array: pairs), forKey: "fields")
        }
        coder.encode(request.httpBody.map { NSData(data: $0) }, forKey: "httpBody")
    }

    static func read(_ coder: NSCoder) -> URLRequest? {
        guard coder.allowsKeyedCoding else { return nil }
        let url = self.url("url", in: coder)
        var request = URLRequest(url: url ?? URL(fileURLWithPath: "/"))
        request.url = url
        request.mainDocumentURL = self.url("mainDocumentURL", in: coder)
        let policy = UInt(exactly: coder.decodeInt64(forKey: "cachePolicy"))
        request.cachePolicy = policy.flatMap(URLRequest.CachePolicy.init) ?? .useProtocolCachePolicy
        if coder.containsValue(forKey: "timeoutInterval") {
            request.timeoutInterval = coder.decodeDouble(forKey: "timeoutInterval")
        }
        let service = UInt(exactly: coder.decodeInt64(forKey: "networkServiceType"))
        request.networkServiceType = service.flatMap(URLRequest.NetworkServiceType.init) ?? .default
        request.allowsCellularAccess = coder.decodeBool(forKey: "allowsCellularAccess")
        request.httpShouldHandleCookies = coder.decodeBool(forKey: "httpShouldHandleCookies")
        request.httpMethod = coder.decodeObject(of: NSString.self, forKey: "httpMethod").map { "\($0)" }
        request.allHTTPHeaderFields = self.fields(in: coder)
        request.httpBody = coder.decodeObject(of: NSData.self, forKey: "httpBody").map { Data(referencing: $0) }
        return request
    }

    private static func url(_ key: String, in coder: NSCoder) -> URL? {
        coder.decodeObject(of: NSURL.self, forKey: key).flatMap(\.absoluteString).flatMap { URL(string: $0) }
    }

    private static func fields(in coder: NSCoder) -> [String: String]? {
        guard coder.containsValue(forKey: "fields") else { return nil }
        let list = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "fields") as? [String]
        guard let list else { return nil }
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: list.count - 1, by: 2) { fields[list[index]] = list[index + 1] }
        return fields
    }
}
