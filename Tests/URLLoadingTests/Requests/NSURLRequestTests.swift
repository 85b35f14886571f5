import Foundation
import Testing
import URLLoading

@Suite("Requests as objects")
struct NSURLRequestTests {
    private let url: URL

    init() throws {
        self.url = try #require(URL(string: "http://swift.org/a"))
    }

    private func changed() -> NSMutableURLRequest {
        let request = NSMutableURLRequest(url: self.url)
        request.httpMethod = "post"
        request.setValue("1", forHTTPHeaderField: "A")
        request.addValue("2", forHTTPHeaderField: "a")
        request.httpBody = Data([1, 2, 3])
        request.mainDocumentURL = self.url
        request.timeoutInterval = 5
        request.cachePolicy = .returnCacheDataElseLoad
        return request
    }

    @Test func requestIsCopiedWithAllItHolds() throws {
        let request = self.changed()
        let copy = try #require(request.copy() as? NSURLRequest)
        #expect(!(copy is NSMutableURLRequest) && copy == request && copy.hash == request.hash)
        let mutable = try #require(copy.mutableCopy() as? NSMutableURLRequest)
        mutable.httpMethod = "HEAD"
        request.url = nil
        #expect(copy.httpMethod == "POST" && copy.url == self.url && copy.value(forHTTPHeaderField: "A") == "1,2")
        #expect(copy.httpBody == Data([1, 2, 3]) && copy.timeoutInterval == 5 && copy.mainDocumentURL == self.url)
        #expect(copy != mutable && mutable.cachePolicy == .returnCacheDataElseLoad)
    }

    /// Sets up its requests in the designated initializer.
    private final class OwnRequest: NSMutableURLRequest {
        override init(url: URL, cachePolicy: NSURLRequest.CachePolicy, timeoutInterval: TimeInterval) {
            super.init(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
            self.httpMethod = "PUT"
            self.timeoutInterval = 7
        }
        required init?(coder: NSCoder) { super.init(coder: coder) }
    }

    @Test func onlyAChosenTimeoutTakesPrecedence() {
        for request in [NSURLRequest(url: self.url), NSMutableURLRequest(url: self.url)] {
            #expect((request as URLRequest).chosenTimeout == nil && request.timeoutInterval == 60)
            #expect(request as URLRequest == URLRequest(url: self.url))
        }
        let chosen = NSURLRequest(url: self.url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60)
        #expect((chosen as URLRequest).chosenTimeout == 60)
        let changed = NSMutableURLRequest(url: self.url)
        changed.timeoutInterval = 60
        #expect((changed as URLRequest).chosenTimeout == 60)
        let own = OwnRequest(url: self.url)
        #expect((own as URLRequest).chosenTimeout == 7 && own.httpMethod == "PUT")
    }

    @Test func objectHasThePropertiesOfTheValue() {
        let request = NSMutableURLRequest(url: self.url)
        request.allowsUltraConstrainedNetworkAccess = false
        request.assumesHTTP3Capable = true
        request.requiresDNSSECValidation = true
        request.allowsPersistentDNS = true
        request.cookiePartitionIdentifier = "p"
        var value = URLRequest(url: self.url)
        value.allowsUltraConstrainedNetworkAccess = false
        value.assumesHTTP3Capable = true
        value.requiresDNSSECValidation = true
        value.allowsPersistentDNS = true
        value.cookiePartitionIdentifier = "p"
        #expect((request as URLRequest).isSame(as: value))
        let object = value as NSURLRequest
        #expect(!object.allowsUltraConstrainedNetworkAccess && object.assumesHTTP3Capable)
        #expect(object.requiresDNSSECValidation && object.allowsPersistentDNS)
        #expect(object.cookiePartitionIdentifier == "p")
    }

    @Test func requestCanBeMadeFromNothing() {
        for request in [NSURLRequest(), NSMutableURLRequest()] {
            #expect(request.url == nil && request.httpMethod == "GET" && request.timeoutInterval == 60)
            #expect((request as URLRequest).chosenTimeout == nil)
        }
        #expect(NSMutableURLRequest().url == nil && OwnRequest().httpMethod == "PUT")
    }

    @Test func requestIsDecodedFromAnArchive() throws {
        let request = self.changed()
        let data = try NSKeyedArchiver.archivedData(withRootObject: request, requiringSecureCoding: true)
        let back = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: NSMutableURLRequest.self, from: data))
        #expect(back == request && back.httpBody == Data([1, 2, 3]) && back.allHTTPHeaderFields == ["A": "1,2"])
        let plain = NSURLRequest(url: self.url)
        let bare = try NSKeyedArchiver.archivedData(withRootObject: plain, requiringSecureCoding: true)
        let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: bare))
        #expect(read == plain && read.allHTTPHeaderFields == nil && read.httpBody == nil)
    }

    @Test func everyPropertyIsArchived() throws {
        let changes: [(inout URLRequest) -> Void] = [
            { $0.mainDocumentURL = $0.url }, { $0.cachePolicy = .reloadRevalidatingCacheData },
            { $0.timeoutInterval = 60 }, { $0.networkServiceType = .video }, { $0.attribution = .user },
            { $0.allowsCellularAccess = false }, { $0.allowsExpensiveNetworkAccess = false },
            { $0.allowsConstrainedNetworkAccess = false }, { $0.allowsUltraConstrainedNetworkAccess = false },
            { $0.assumesHTTP3Capable = true }, { $0.requiresDNSSECValidation = true },
            { $0.allowsPersistentDNS = true },
            { $0.httpShouldHandleCookies = false }, { $0.httpShouldUsePipelining = true },
            { $0.cookiePartitionIdentifier = "p" }, { $0.httpMethod = "PUT" }, { $0.httpBody = Data([1]) },
            { $0.setValue("1", forHTTPHeaderField: "A") },
        ]
        for (index, change) in changes.enumerated() {
            var request = URLRequest(url: self.url)
            change(&request)
            let data = try NSKeyedArchiver.archivedData(
                withRootObject: request as NSURLRequest, requiringSecureCoding: true)
            let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: NSURLRequest.self, from: data)
            let read = try #require(back) as URLRequest
            #expect(read.isSame(as: request) && read.chosenTimeout == request.chosenTimeout, "change \(index)")
        }
    }

    @Test func archiveWithoutAClassIsRead() throws {
        let request = self.changed()
        let data = try NSKeyedArchiver.archivedData(withRootObject: request, requiringSecureCoding: false)
        let reader = try NSKeyedUnarchiver(forReadingFrom: data)
        reader.requiresSecureCoding = false
        let back = reader.decodeObject(forKey: NSKeyedArchiveRootObjectKey) as? NSURLRequest
        #expect(back == request)
    }

    @Test func descriptionHasTheURL() {
        let request = NSMutableURLRequest(url: self.url)
        #expect(request.description.contains("http://swift.org/a"))
        request.url = nil
        #expect(request.description.contains("(null)"))
    }

    @Test func requestIsBridgedToAValueAndBack() throws {
        let url = try #require(URL(string: "http://a.test/"))
        let object = NSMutableURLRequest(url: url)
        object.httpMethod = "PUT"
        let value = object as URLRequest
        #expect(value.httpMethod == "PUT" && value.url == url)
        #expect((value as NSURLRequest).httpMethod == "PUT")
        let anything: Any = object
        #expect((anything as? URLRequest)?.httpMethod == "PUT")
    }
}
