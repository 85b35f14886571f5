/// The customary text behind a status (RFC 9110 §15); nothing depends on it.
enum ReasonPhrase {
    static func of(_ status: Int) -> String {
        switch status {
        case 101: "Switching Protocols"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 408: "Request Timeout"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        case 505: "HTTP Version Not Supported"
        case 400...499: "Client Error"
        default: "Server Error"
        }
    }
}
