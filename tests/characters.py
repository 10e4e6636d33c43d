"""The code points that tests go through one by one."""


def code_points(one_in: int = 64) -> list[int]:
    "All but surrogates; of planes 4 to 13, in which no Unicode has a character yet, and of the private planes 15 and 16, one in so many."
    return [
        i
        for i in range(0x110000)
        if not 0xD800 <= i < 0xE000
        and (not 0x40000 <= i < 0xE0000 and i < 0xF0000 or i % one_in == 0 or i & 0xFFFF >= 0xFFF0)
    ]
