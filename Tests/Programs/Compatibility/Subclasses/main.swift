// Subclasses: classes that programs derive from those of the URL loading system, each with overrides.
// Prints a line for each; built with warnings as errors, and also with FoundationNetworking.
import Foundation
import URLLoading

// A class that adds nothing inherits the initializers.
final class PlainCache: URLCache, @unchecked Sendable {}
final class PlainSession: URLSession, @unchecked Sendable {}
final class PlainRequest: NSURLRequest {}
final class PlainMutableRequest: NSMutableURLRequest {}
final class PlainSpace: URLProtectionSpace, @unchecked Sendable {}
final class PlainAnswer: CachedURLResponse, @unchecked Sendable {}
final class PlainResponse: URLResponse, @unchecked Sendable {}
final class PlainHTTPResponse: HTTPURLResponse, @unchecked Sendable {}
final class PlainCredential: URLCredential, @unchecked Sendable {}
final class PlainStorage: URLCredentialStorage, @unchecked Sendable {}
final class PlainCookie: HTTPCookie, @unchecked Sendable {}
final class PlainProtocol: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { false }
}

final class CountingCache: URLCache, @unchecked Sendable {
    var asked: [String] = []

    override init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        super.init(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, diskPath: path)
    }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        self.asked.append("cachedResponse")
        return super.cachedResponse(for: request)
    }
    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        self.asked.append("storeCachedResponse")
        super.storeCachedResponse(cachedResponse, for: request)
    }
    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        super.storeCachedResponse(cachedResponse, for: dataTask)
    }
    override func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        super.getCachedResponse(for: dataTask, completionHandler: completionHandler)
    }
    override func removeCachedResponse(for request: URLRequest) {
        self.asked.append("removeCachedResponse")
        super.removeCachedResponse(for: request)
    }
    override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        super.removeCachedResponse(for: dataTask)
    }
    override func removeCachedResponses(since date: Date) { super.removeCachedResponses(since: date) }
    override func removeAllCachedResponses() {
        self.asked.append("removeAllCachedResponses")
        super.removeAllCachedResponses()
    }
    override var memoryCapacity: Int {
        get { super.memoryCapacity }
        set { super.memoryCapacity = newValue }
    }
    override var diskCapacity: Int {
        get { super.diskCapacity }
        set { super.diskCapacity = newValue }
    }
    override var currentMemoryUsage: Int { super.currentMemoryUsage }
    override var currentDiskUsage: Int { super.currentDiskUsage }
}

final class NamedSession: URLSession, @unchecked Sendable {
    let name: String

    init(name: String) {
        self.name = name
        super.init(configuration: .ephemeral)
    }

    override init(configuration: URLSessionConfiguration) {
        self.name = "unnamed"
        super.init(configuration: configuration)
    }

    override init(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?,
        delegateQueue queue: OperationQueue?
    ) {
        self.name = "delegated"
        super.init(configuration: configuration, delegate: delegate, delegateQueue: queue)
    }

    override func dataTask(with request: URLRequest) -> URLSessionDataTask {
        var named = request
        named.setValue(self.name, forHTTPHeaderField: "X-Session")
        return super.dataTask(with: named)
    }
    override func dataTask(with url: URL) -> URLSessionDataTask { self.dataTask(with: URLRequest(url: url)) }
    override func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask { super.dataTask(with: request, completionHandler: completionHandler) }
    override func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        super.uploadTask(with: request, from: bodyData)
    }
    override func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        super.uploadTask(with: request, fromFile: fileURL)
    }
    override func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        super.uploadTask(withStreamedRequest: request)
    }
    override func downloadTask(with request: URLRequest) -> URLSessionDownloadTask { super.downloadTask(with: request) }
    override func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        super.downloadTask(withResumeData: resumeData)
    }
    override func webSocketTask(with request: URLRequest) -> URLSessionWebSocketTask {
        super.webSocketTask(with: request)
    }
    override func webSocketTask(with url: URL, protocols: [String]) -> URLSessionWebSocketTask {
        super.webSocketTask(with: url, protocols: protocols)
    }
    override func getAllTasks(completionHandler: @escaping @Sendable ([URLSessionTask]) -> Void) {
        super.getAllTasks(completionHandler: completionHandler)
    }
    override func getTasksWithCompletionHandler(
        _ completionHandler:
            @escaping @Sendable (
                [URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]
            ) -> Void
    ) { super.getTasksWithCompletionHandler(completionHandler) }
    override func reset(completionHandler: @escaping @Sendable () -> Void) {
        super.reset(completionHandler: completionHandler)
    }
    override func flush(completionHandler: @escaping @Sendable () -> Void) {
        super.flush(completionHandler: completionHandler)
    }
    override func finishTasksAndInvalidate() { super.finishTasksAndInvalidate() }
    override func invalidateAndCancel() { super.invalidateAndCancel() }
    override var delegate: (any URLSessionDelegate)? { super.delegate }
    override var delegateQueue: OperationQueue { super.delegateQueue }
    override var configuration: URLSessionConfiguration { super.configuration }
    override var sessionDescription: String? {
        get { super.sessionDescription ?? self.name }
        set { super.sessionDescription = newValue }
    }
}

/// Has a stored property that changes, as requests may: they are not Sendable.
final class TaggedRequest: NSURLRequest {
    var tag = "none"

    override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
        super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
        self.tag = "designated"
    }
    required init?(coder: NSCoder) { super.init(coder: coder) }

    override var httpMethod: String? {
        get { "TAGGED" }
        set { _ = newValue }
    }
    override var url: URL? { super.url }
    override func value(forHTTPHeaderField field: String) -> String? { self.tag }
}

class TaggedMutableRequest: NSMutableURLRequest {
    var tag = "none"

    override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
        super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
        self.tag = "designated"
    }
    required init?(coder: NSCoder) { super.init(coder: coder) }

    override func setValue(_ value: String?, forHTTPHeaderField field: String) {
        super.setValue(value, forHTTPHeaderField: field)
    }
    override func addValue(_ value: String, forHTTPHeaderField field: String) {
        super.addValue(value, forHTTPHeaderField: field)
    }
    override var httpMethod: String? {
        get { super.httpMethod }
        set { super.httpMethod = newValue }
    }
}

final class RealmSpace: URLProtectionSpace, @unchecked Sendable {
    override init(host: String, port: Int, `protocol`: String?, realm: String?, authenticationMethod: String?) {
        super.init(
            host: host, port: port, protocol: `protocol`, realm: "own", authenticationMethod: authenticationMethod)
    }
    override init(proxyHost host: String, port: Int, type: String?, realm: String?, authenticationMethod: String?) {
        super.init(proxyHost: host, port: port, type: type, realm: "own", authenticationMethod: authenticationMethod)
    }
    override var host: String { super.host }
    override var receivesCredentialSecurely: Bool { super.receivesCredentialSecurely }
}

final class AgedAnswer: CachedURLResponse, @unchecked Sendable {
    var age = 0

    override init(response: URLResponse, data: Data) {
        super.init(response: response, data: data)
    }
    override init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy
    ) { super.init(response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy) }
    override var data: Data { super.data }
    override var storagePolicy: URLCache.StoragePolicy { super.storagePolicy }
}

/// Answers requests of `own:` with the text of the URL. It has state, like the protocols of programs.
final class OwnProtocol: URLProtocol {
    var isStopped = false

    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "own" }
    override class func canInit(with task: URLSessionTask) -> Bool {
        task.currentRequest.map(Self.canInit(with:)) ?? false
    }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }
    override class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        super.requestIsCacheEquivalent(a, to: b)
    }

    // Both ways to make one end here: the other is a convenience that is inherited.
    required init(request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?) {
        super.init(request: request, cachedResponse: cachedResponse, client: client)
    }

    override func startLoading() {
        guard let url = self.request.url else { return }
        let text = Data(url.absoluteString.utf8)
        let response = URLResponse(
            url: url, mimeType: "text/plain", expectedContentLength: text.count, textEncodingName: "utf-8")
        self.client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        self.client?.urlProtocol(self, didLoad: text)
        self.client?.urlProtocolDidFinishLoading(self)
    }
    override func stopLoading() { self.isStopped = true }
}

/// Records the calls of a protocol, from any thread: Sendable without declaring it.
final class Listener: NSObject, URLProtocolClient {
    func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse) {}
    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {}
    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {}
    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {}
    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) { print("listener: finished") }
    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {}
    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {}
    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
}

final class Sender: NSObject, URLAuthenticationChallengeSender {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {}
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {}
    func cancel(_ challenge: URLAuthenticationChallenge) {}
    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {}
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {}
}

final class StrictStorage: URLCredentialStorage, @unchecked Sendable {
    override func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        super.credentials(for: space)
    }
    override func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        super.defaultCredential(for: space)
    }
    override func set(_ credential: URLCredential, for space: URLProtectionSpace) { super.set(credential, for: space) }
    override func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        super.remove(credential, for: space)
    }
    override var allCredentials: [URLProtectionSpace: [String: URLCredential]] { super.allCredentials }
}

final class StrictCookies: HTTPCookieStorage, @unchecked Sendable {
    override func setCookie(_ cookie: HTTPCookie) {}
    override func cookies(for url: URL) -> [HTTPCookie]? { super.cookies(for: url) }
    override func deleteCookie(_ cookie: HTTPCookie) { super.deleteCookie(cookie) }
}

func sendable<Value: Sendable>(_ value: Value) -> Value { value }

guard let place = URL(string: "http://example.test/a") else { exit(1) }

let cache = CountingCache(memoryCapacity: 1 << 16, diskCapacity: 0, diskPath: nil)
let response = PlainResponse(url: place, mimeType: nil, expectedContentLength: 1, textEncodingName: nil)
let answer = AgedAnswer(response: response, data: Data("x".utf8))
cache.storeCachedResponse(answer, for: URLRequest(url: place))
_ = cache.cachedResponse(for: URLRequest(url: place))
print(
    "cache:", cache.asked.joined(separator: " "),
    PlainCache(memoryCapacity: 1, diskCapacity: 0, diskPath: nil).memoryCapacity)
print("answer:", answer.data.count, PlainAnswer(response: response, data: Data()).data.count)

let named = NamedSession(name: "own")
print("session:", named.sessionDescription ?? "", NamedSession(configuration: .ephemeral).name)
print("task:", named.dataTask(with: place).originalRequest?.value(forHTTPHeaderField: "X-Session") ?? "none")
print("plain session:", PlainSession(configuration: .ephemeral).delegate == nil)

let tagged = TaggedRequest(url: place)
print("request:", tagged.tag, tagged.httpMethod ?? "", tagged.value(forHTTPHeaderField: "X") ?? "")
let changeable = TaggedMutableRequest(url: place)
changeable.setValue("1", forHTTPHeaderField: "X")
print("mutable request:", changeable.tag, changeable.value(forHTTPHeaderField: "X") ?? "")
print("plain requests:", PlainRequest(url: place).url == place, PlainMutableRequest(url: place).url == place)
let reference: URLRequest.ReferenceType = tagged
print("reference:", reference.url == place)

let space = RealmSpace(host: "h", port: 1, protocol: "http", realm: "r", authenticationMethod: nil)
let proxy = RealmSpace(proxyHost: "h", port: 1, type: nil, realm: "r", authenticationMethod: nil)
print("space:", space.realm ?? "", proxy.realm ?? "", proxy.isProxy())
print("plain space:", PlainSpace(host: "h", port: 7, protocol: nil, realm: nil, authenticationMethod: nil).port)

let listener = Listener()
let own = OwnProtocol(
    request: URLRequest(url: place), cachedResponse: nil, client: sendable(listener as any URLProtocolClient))
own.startLoading()
own.stopLoading()
print("protocol:", own.isStopped, PlainProtocol.canInit(with: URLRequest(url: place)) == false)
let challenge = URLAuthenticationChallenge(
    protectionSpace: space, proposedCredential: PlainCredential(user: "u", password: "p", persistence: .none),
    previousFailureCount: 0, failureResponse: nil, error: nil,
    sender: sendable(Sender() as any URLAuthenticationChallengeSender))
print("challenge:", challenge.proposedCredential?.user ?? "")
let head = PlainHTTPResponse(url: place, statusCode: 204, httpVersion: nil, headerFields: nil)
let cookie = PlainCookie(properties: [.name: "n", .value: "v", .domain: "example.test", .path: "/"])
print("plain others:", head?.statusCode ?? 0, cookie?.name ?? "", PlainStorage().allCredentials.count)
print("strict storage:", StrictStorage().allCredentials.count)
print("resume data:", URLSessionDownloadTaskResumeData.isEmpty == false)

let configuration = URLSessionConfiguration.ephemeral
configuration.protocolClasses = [OwnProtocol.self]
let session = NamedSession(configuration: configuration, delegate: nil, delegateQueue: nil)
do {
    guard let url = URL(string: "own:text") else { exit(1) }
    let (data, _) = try await session.data(from: url)
    print("loaded:", String(decoding: data, as: UTF8.self))
} catch {
    print("loaded:", error)
}
