/// Keys of `URLSessionConfiguration.connectionProxyDictionary`, with CFNetwork's names and values. Those that end with
/// `Enable`, and `kCFNetworkProxiesExcludeSimpleHostnames`, have a `Bool` or a number; those that end with `Port` a number.
public let kCFNetworkProxiesHTTPEnable = "HTTPEnable"
/// Host name, address or URL of the proxy.
public let kCFNetworkProxiesHTTPProxy = "HTTPProxy"
public let kCFNetworkProxiesHTTPPort = "HTTPPort"
/// For `https` and `wss` URLs, and for stream tasks.
public let kCFNetworkProxiesHTTPSEnable = "HTTPSEnable"
public let kCFNetworkProxiesHTTPSProxy = "HTTPSProxy"
public let kCFNetworkProxiesHTTPSPort = "HTTPSPort"
/// For connections without an HTTP or HTTPS proxy.
public let kCFNetworkProxiesSOCKSEnable = "SOCKSEnable"
public let kCFNetworkProxiesSOCKSProxy = "SOCKSProxy"
public let kCFNetworkProxiesSOCKSPort = "SOCKSPort"
/// Hosts that are reached directly, as `[String]`: names with all names below them, addresses, networks such as
/// `169.254/16`, and patterns such as `*.local` and `192.168.*`.
public let kCFNetworkProxiesExceptionsList = "ExceptionsList"
/// Whether hosts without a dot in their name are reached directly.
public let kCFNetworkProxiesExcludeSimpleHostnames = "ExcludeSimpleHostnames"
/// Whether a script chooses the proxies (PAC).
public let kCFNetworkProxiesProxyAutoConfigEnable = "ProxyAutoConfigEnable"
/// The script's URL.
public let kCFNetworkProxiesProxyAutoConfigURLString = "ProxyAutoConfigURLString"
/// The script itself, instead of its URL.
public let kCFNetworkProxiesProxyAutoConfigJavaScript = "ProxyAutoConfigJavaScript"
/// Not supported: tasks fail.
public let kCFNetworkProxiesProxyAutoDiscoveryEnable = "ProxyAutoDiscoveryEnable"

/// User and password for HTTP proxies.
public let kCFProxyUsernameKey = "kCFProxyUsernameKey"
public let kCFProxyPasswordKey = "kCFProxyPasswordKey"

/// User and password for SOCKS proxies.
public let kCFStreamPropertySOCKSUser = "kCFStreamPropertySOCKSUser"
public let kCFStreamPropertySOCKSPassword = "kCFStreamPropertySOCKSPassword"
/// Version of SOCKS: one of the next two constants. Default: version 5.
public let kCFStreamPropertySOCKSVersion = "kCFStreamPropertySOCKSVersion"
public let kCFStreamSocketSOCKSVersion4 = "kCFStreamSocketSOCKSVersion4"
public let kCFStreamSocketSOCKSVersion5 = "kCFStreamSocketSOCKSVersion5"
