import Foundation
import Testing
import URLLoading

@Suite("Requests")
struct URLRequestTests {
    private let url: URL
    private let other: URL

    init() throws {
        self.url = try #require(URL(string: "http://swift.org"))
        self.other = try #require(URL(string: "http://github.com/a"))
    }

    @Test func requestHasFoundationsDefaults() {
        let request = URLRequest(url: self.url)
        #expect(
            request.url == self.url && request.httpMethod == "GET" && request.cachePolicy == .useProtocolCachePolicy)
        #expect(request.allHTTPHeaderFields == nil && request.mainDocumentURL == nil && request.timeoutInterval == 60)
        #expect(request.httpShouldHandleCookies && !request.httpShouldUsePipelining && request.allowsCellularAccess)
        #expect(request.allowsExpensiveNetworkAccess && request.allowsConstrainedNetworkAccess)
        #expect(request.allowsUltraConstrainedNetworkAccess && !request.assumesHTTP3Capable)
        #expect(!request.requiresDNSSECValidation && !request.allowsPersistentDNS)
        #expect(request.cookiePartitionIdentifier == nil)
        #expect(request.attribution == .developer && request.networkServiceType == .default)
        #expect(request.httpBody == nil && request.httpBodyStream == nil)
    }

    @Test func explicitTimeoutDiffersFromTheDefault() {
        #expect(URLRequest(url: self.url).chosenTimeout == nil)
        #expect(URLRequest(url: self.url, timeoutInterval: 60).chosenTimeout == 60)
        let request = URLRequest(url: self.url, cachePolicy: .returnCacheDataDontLoad, timeoutInterval: 1.5)
        #expect(request.timeoutInterval == 1.5 && request.cachePolicy == .returnCacheDataDontLoad)
        var later = URLRequest(url: self.url)
        later.timeoutInterval = 60
        #expect(later.chosenTimeout == 60)
    }

    @Test func fieldKeepsTheNameFirstGiven() {
        var request = URLRequest(url: self.url)
        request.setValue("application/json", forHTTPHeaderField: "Accept")
        request.setValue("application/xml", forHTTPHeaderField: "accept")
        #expect(request.allHTTPHeaderFields == ["Accept": "application/xml"])
        request.addValue("text/html", forHTTPHeaderField: "ACCEPT")
        #expect(request.value(forHTTPHeaderField: "aCCept") == "application/xml,text/html")
        request.addValue("one", forHTTPHeaderField: "X-New")
        request.setValue(nil, forHTTPHeaderField: "accept")
        #expect(request.allHTTPHeaderFields == ["X-New": "one"])
        request.setValue(nil, forHTTPHeaderField: "x-new")
        #expect(request.allHTTPHeaderFields == [:])
        request.allHTTPHeaderFields = nil
        #expect(request.allHTTPHeaderFields == nil)
        request.allHTTPHeaderFields = ["A": "1", "a": "2", "B": "\r\nC: 3", "D E": "4"]
        #expect(request.allHTTPHeaderFields == ["A": "2"])
    }

    @Test(arguments: [
        "\r\nevil: hello\r\n\r\nGET /other HTTP/1.1\r\nevil: hello", "a\0b", "a\rb", "a\r", "a\nb", "a\n", "a\r\nb",
        "a\r\n", "a\r\rb", "a\r\n\r\n b", "a\r\n \r",
    ])
    func valueThatWouldBeginAnotherFieldIsRefused(_ value: String) {
        var request = URLRequest(url: self.url)
        request.setValue(value, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == nil)
        request.setValue("kept", forHTTPHeaderField: "Foo")
        request.addValue(value, forHTTPHeaderField: "Foo")
        request.setValue(value, forHTTPHeaderField: "foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == "kept")
    }

    @Test(arguments: ["Bar\r\n\tBuz", "Bar\r\n Buz", "", "caf\u{E9}", "a\tb"])
    func foldedValueIsTaken(_ value: String) {
        var request = URLRequest(url: self.url)
        request.setValue(value, forHTTPHeaderField: "Foo")
        #expect(request.value(forHTTPHeaderField: "Foo") == value)
    }

    @Test(arguments: ["", "A B", "A:", "A\r\nB", "\u{E9}", "A@", "A\0", "(A)", "A[", "A]"])
    func nameThatIsNoTokenIsRefused(_ name: String) {
        var request = URLRequest(url: self.url)
        request.setValue("x", forHTTPHeaderField: name)
        #expect(request.allHTTPHeaderFields?.isEmpty ?? true)
    }

    @Test(
        arguments: [
            ("get", "GET"), ("gEt", "GET"), ("hEAD", "HEAD"), ("pOST", "POST"), ("PUt", "PUT"), ("dELETe", "DELETE"),
            ("cOnNeCt", "CONNECT"), ("OPTIONS", "OPTIONS"), ("options", "options"), ("trace", "trace"),
            ("patch", "patch"), ("foo", "foo"), ("BAR", "BAR"), (nil, "GET"),
        ] as [(String?, String)])
    func knownMethodIsWrittenInCapitals(_ given: String?, _ kept: String) {
        var request = URLRequest(url: self.url)
        request.httpMethod = given
        #expect(request.httpMethod == kept)
    }

    @Test func requestHasOneKindOfBody() {
        var request = URLRequest(url: self.url)
        request.httpBody = Data("body".utf8)
        let stream = InputStream(data: Data())
        request.httpBodyStream = stream
        #expect(request.httpBody == nil && request.httpBodyStream === stream)
        request.httpBody = Data()
        #expect(request.httpBody == Data() && request.httpBodyStream == nil)
    }

    @Test func requestIsAValue() {
        var request = URLRequest(url: self.url)
        request.setValue("1", forHTTPHeaderField: "A")
        request.httpBody = Data([1])
        let copy = request
        #expect(copy == request && copy.hashValue == request.hashValue)
        request.addValue("2", forHTTPHeaderField: "A")
        request.url = self.other
        #expect(copy.value(forHTTPHeaderField: "A") == "1" && copy.url == self.url)
    }

    @Test func requestsDifferInAnyProperty() {
        var variants = [URLRequest(url: self.url)]
        let changes: [(inout URLRequest) -> Void] = [
            { $0.url = self.other }, { $0.mainDocumentURL = self.other }, { $0.httpMethod = "HEAD" },
            { $0.cachePolicy = .reloadRevalidatingCacheData }, { $0.timeoutInterval = 3 }, { $0.httpBody = Data([1]) },
            { $0.httpBodyStream = InputStream(data: Data()) }, { $0.httpBodyStream = InputStream(data: Data()) },
            { $0.httpShouldHandleCookies = false }, { $0.httpShouldUsePipelining = true },
            { $0.allowsCellularAccess = false }, { $0.networkServiceType = .video }, { $0.attribution = .user },
            { $0.setValue("1", forHTTPHeaderField: "A") }, { $0.cookiePartitionIdentifier = "p" },
            { $0.allowsExpensiveNetworkAccess = false }, { $0.allowsConstrainedNetworkAccess = false },
            { $0.allowsUltraConstrainedNetworkAccess = false }, { $0.assumesHTTP3Capable = true },
            { $0.requiresDNSSECValidation = true }, { $0.allowsPersistentDNS = true },
        ]
        for change in changes {
            var variant = URLRequest(url: self.url)
            change(&variant)
            variants.append(variant)
        }
        for (index, variant) in variants.enumerated() {
            #expect(variants.indices.allSatisfy { $0 == index || !variants[$0].isSame(as: variant) }, "\(index)")
        }
    }

    /// As on macOS and in FoundationNetworking: a key is found again with the fields of a session.
    @Test func fieldsBodyAndTimeLimitMakeNoOtherRequest() {
        let request = URLRequest(url: self.url)
        let same: [(inout URLRequest) -> Void] = [
            { $0.setValue("1", forHTTPHeaderField: "A") }, { $0.allHTTPHeaderFields = [:] }, { $0.timeoutInterval = 3 },
            { $0.httpBody = Data([1]) }, { $0.networkServiceType = .video }, { $0.httpShouldUsePipelining = true },
        ]
        let other: [(inout URLRequest) -> Void] = [
            { $0.url = self.other }, { $0.mainDocumentURL = self.other }, { $0.httpMethod = "HEAD" },
            { $0.cachePolicy = .reloadRevalidatingCacheData }, { $0.httpBodyStream = InputStream(data: Data()) },
            { $0.httpShouldHandleCookies = false }, { $0.allowsCellularAccess = false },
        ]
        for change in same {
            var changed = request
            change(&changed)
            #expect(changed == request && changed.hashValue == request.hashValue)
            #expect(changed as NSURLRequest == request as NSURLRequest)
        }
        for change in other {
            var changed = request
            change(&changed)
            #expect(changed != request)
        }
    }

    @Test func descriptionHasTheURL() throws {
        var request = URLRequest(url: self.url)
        #expect(request.description == "http://swift.org" && request.debugDescription == "http://swift.org")
        request.url = nil
        #expect(request.description == "url: nil")
    }

    @Test func relativeURLIsMadeAbsolute() throws {
        let relative = try #require(URL(string: "/get", relativeTo: URL(string: "http://httpbin.org")))
        var request = URLRequest(url: relative)
        #expect(request.url?.relativeString == "http://httpbin.org/get" && request.url?.baseURL == nil)
        request.url = relative
        #expect(request.url?.relativeString == "/get" && request.url?.baseURL?.absoluteString == "http://httpbin.org")
    }

    @Test func requestEnumsHaveFoundationsRawValues() {
        #expect([0, 1, 2, 3, 4, 5].compactMap(URLRequest.CachePolicy.init).count == 6)
        #expect(URLRequest.CachePolicy.reloadIgnoringCacheData.rawValue == 1)
        #expect(URLRequest.CachePolicy.reloadRevalidatingCacheData.rawValue == 5)
        #expect(URLRequest.NetworkServiceType.responsiveData.rawValue == 6)
        #expect(URLRequest.NetworkServiceType.avStreaming.rawValue == 8)
        #expect(URLRequest.NetworkServiceType.responsiveAV.rawValue == 9)
        #expect(URLRequest.NetworkServiceType.callSignaling.rawValue == 11)
        #expect(URLRequest.Attribution.user.rawValue == 1)
    }
}
