/// The functions that a PAC script may call, in JavaScript, and the two entry points of the engine.
enum ProxyScriptPrelude {
    /// `__load(source, zone)` runs a script and gives "=" or "!" and an error. `__find(url, host, names, own, zone)` gives
    /// "=" and the proxies, "?" and the name of a host to look up, or "!" and an error. `zone` is in seconds east of UTC.
    ///
    /// Ranges are inclusive as in browsers: `timeRange(9, 17)` holds until 17:59:59. Those that end before they begin wrap.
    static let text = #"""
        (function (global) {
            var setZone = \#(ProxyScriptDate.text);
            // Duktape's own: what it knows of pointers and of callers is not for scripts.
            delete global.Duktape;
            var names = {}, own = "127.0.0.1", wanted = null, find = null;
            var days = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
            var months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
            function number(address) {
                var parts = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(address), value = 0;
                if (!parts) return null;
                for (var i = 1; i <= 4; i++) {
                    if (+parts[i] > 255) return null;
                    value = value * 256 + +parts[i];
                }
                return value;
            }
            function resolve(host) {
                host = String(host);
                if (number(host) !== null) return host;
                if (names["." + host] !== undefined) return names["." + host] || null;
                if (wanted === null) wanted = host;
                throw new Error("the address of " + host + " is not known yet");
            }
            function now(list) {
                var utc = list[list.length - 1] === "GMT", date = new Date();
                if (utc) list.pop();
                function part(name) { return date[(utc ? "getUTC" : "get") + name](); }
                return {
                    weekday: part("Day"), day: part("Date"), month: part("Month"), year: part("FullYear"),
                    second: part("Hours") * 3600 + part("Minutes") * 60 + part("Seconds")
                };
            }
            function within(value, first, last) {
                return first <= last ? first <= value && value <= last : value >= first || value <= last;
            }
            function monthOf(text) { return months.indexOf(String(text).toUpperCase()); }
            // The parts of a date that are given, in one number, and the same parts of another date.
            function key(parts, date) {
                var value = 0, other = 0;
                parts.forEach(function (part) {
                    var month = typeof part === "string" ? monthOf(part) : -1;
                    if (month >= 0) { value += month * 100; other += date.month * 100; }
                    else if (part > 31) { value += part * 10000; other += date.year * 10000; }
                    else { value += +part; other += date.day; }
                });
                return { value: value, other: other };
            }
            global.isPlainHostName = function (host) { return !/[.:]/.test(host); };
            global.dnsDomainIs = function (host, domain) {
                return host.length >= domain.length && host.substring(host.length - domain.length) === domain;
            };
            global.localHostOrDomainIs = function (host, name) {
                return host === name || host.indexOf(".") < 0 && name.indexOf(host + ".") === 0;
            };
            global.isResolvable = function (host) { return resolve(host) !== null; };
            global.dnsResolve = resolve;
            global.convert_addr = function (address) { return number(address) | 0; };
            global.isInNet = function (host, network, mask) {
                var address = number(resolve(host)), bits = number(mask), base = number(network);
                return address !== null && bits !== null && base !== null && ((address ^ base) & bits) === 0;
            };
            global.myIpAddress = function () { return own; };
            global.dnsDomainLevels = function (host) { return host.split(".").length - 1; };
            global.shExpMatch = function (text, pattern) {
                var source = String(pattern).replace(/[.+^${}()|\[\]\\\/-]/g, "\\$&").replace(/\*+/g, "[^]*");
                return new RegExp("^" + source.replace(/\?/g, "[^]") + "$").test(text);
            };
            global.weekdayRange = function () {
                var list = [].slice.call(arguments), today = now(list).weekday;
                var range = list.map(function (day) { return days.indexOf(String(day).toUpperCase()); });
                if (!range.length || range.indexOf(-1) >= 0) return false;
                return within(today, range[0], range[range.length - 1]);
            };
            global.dateRange = function () {
                var list = [].slice.call(arguments), today = now(list), half = list.length / 2;
                if (!list.length) return false;
                var isDate = list.length % 2 === 1
                    || list.length === 2 && (monthOf(list[0]) >= 0) !== (monthOf(list[1]) >= 0);
                if (isDate) {
                    var date = key(list, today);
                    return date.value === date.other;
                }
                var first = key(list.slice(0, half), today), last = key(list.slice(half), today);
                return within(first.other, first.value, last.value);
            };
            global.timeRange = function () {
                var list = [].slice.call(arguments), second = now(list).second, units = [3600, 60, 1];
                if (list.length === 1) list.push(list[0]);
                var half = list.length / 2;
                if (half < 1 || half > 3 || half !== Math.floor(half)) return false;
                function sum(parts) {
                    return parts.reduce(function (total, part, i) { return total + part * units[i]; }, 0);
                }
                return within(second, sum(list.slice(0, half)), sum(list.slice(half)) + units[half - 1] - 1);
            };
            global.alert = function () {};
            function failure(error) { return "!" + error; }
            global.__load = function (source, zone) {
                setZone(zone);
                try {
                    (0, eval)(source);
                    find = global.FindProxyForURL;
                    return typeof find === "function" ? "=" : "!it has no function FindProxyForURL";
                } catch (error) { return wanted === null ? failure(error) : "!it looks names up before it is asked"; }
            };
            global.__find = function (url, host, known, address, zone) {
                var result;
                setZone(zone);
                names = known; own = address; wanted = null;
                try { result = find(url, host); } catch (error) { if (wanted === null) return failure(error); }
                // A script that catches the error of a lookup is repeated as well.
                if (wanted !== null) return "?" + wanted;
                return "=" + (result === null || result === undefined ? "" : result);
            };
        })(this);
        """# + "\n"
}
