"""Chat templates of seventeen families, written from the descriptions of their formats, with the special tokens that each writes.

Each uses what published templates use: loops with `loop.first` and `loop.last`, namespaces, macros, filters, slices,
`split`, `tojson`, `raise_exception`, tools, documents, reasoning, `{% generation %}`, `{% continue %}`.
"""

CHATML = """\
{%- for message in messages %}
    {%- if loop.first and message['role'] != 'system' %}
        {{- '<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n' }}
    {%- endif %}
    {{- '<|im_start|>' + message['role'] + '\\n' }}
    {%- if message['role'] == 'assistant' %}
        {%- generation %}{{ (message['content'] or '') + '<|im_end|>' }}{% endgeneration %}
    {%- else %}
        {{- message['content'] + '<|im_end|>' }}
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

LLAMA2 = """\
{% if messages[0]['role'] == 'system' %}
{% set loop_messages = messages[1:] %}
{% set system_message = '<<SYS>>\\n' + messages[0]['content'] | trim + '\\n<</SYS>>\\n\\n' %}
{% else %}
{% set loop_messages = messages %}
{% set system_message = '' %}
{% endif %}
{% for message in loop_messages %}
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}
{% endif %}
{% if loop.index0 == 0 %}
{% set content = system_message + message['content'] %}
{% else %}
{% set content = message['content'] %}
{% endif %}
{% if message['role'] == 'user' %}
{{ bos_token + '[INST] ' + content | trim + ' [/INST]' }}
{%- elif message['role'] == 'assistant' %}
{{ ' ' + content | trim + ' ' + eos_token }}
{%- endif %}
{% endfor %}"""

LLAMA3 = """\
{{- bos_token }}
{%- if date_string is not defined %}{% set date_string = '26 Jul 2024' %}{% endif %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = '' %}
{%- endif %}
{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}
{%- if tools %}{{ 'Environment: ipython\\n' }}{% endif %}
{{- 'Today Date: ' + date_string + '\\n\\n' }}
{%- if tools %}
    {{- 'You have access to the following functions. Respond with {"name": function name, "parameters": arguments}.\\n\\n' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- '\\n\\n' }}
    {%- endfor %}
{%- endif %}
{{- system_message + '<|eot_id|>' }}
{%- for message in messages %}
    {%- if message.role == 'tool' or message.role == 'ipython' %}
        {{- '<|start_header_id|>ipython<|end_header_id|>\\n\\n' }}
        {%- if message.content is mapping or message.content is iterable and message.content is not string %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if message.tool_calls | length != 1 %}
            {{- raise_exception('This model only supports single tool-calls at once!') }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
        {{- '{"name": "' + tool_call.name + '", "parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- '}<|eot_id|>' }}
    {%- else %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'\
 + message['content'] | trim + '<|eot_id|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

MISTRAL = """\
{%- set ns = namespace(system='', last_user=-1) %}
{%- for message in messages %}
    {%- if message.role == 'system' %}{% set ns.system = message.content + '\\n\\n' %}{% continue %}{% endif %}
    {%- if message.role == 'user' %}{% set ns.last_user = loop.index0 %}{% endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- if loop.index0 == ns.last_user and tools is not none %}
            {{- '[AVAILABLE_TOOLS] [' }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != 'return' %}
                    {%- if val is string %}{{ '"' + key + '": "' + val + '"' }}{% else %}\
{{ '"' + key + '": ' + val | tojson }}{% endif %}
                    {%- if not loop.last %}{{ ', ' }}{% endif %}
                {%- endfor %}
                {{- '}}' }}{{ ', ' if not loop.last else ']' }}
            {%- endfor %}
            {{- '[/AVAILABLE_TOOLS]' }}
        {%- endif %}
        {%- if loop.last and ns.system %}
            {{- '[INST] ' + ns.system + message.content + '[/INST]' }}
        {%- else %}
            {{- '[INST] ' + message.content + '[/INST]' }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- '[TOOL_CALLS] [' }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function | tojson %}
            {{- out[:-1] }}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {{- ', ' if not loop.last else ']' + eos_token }}
        {%- endfor %}
    {%- elif message.role == 'assistant' %}
        {{- ' ' + message.content | trim + eos_token }}
    {%- elif message.role == 'tool' %}
        {{- '[TOOL_RESULTS] {"content": ' + message.content | string + ', "call_id": "'\
 + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- endif %}
{%- endfor %}"""

GEMMA = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = '' -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if message['role'] == 'assistant' -%}
        {%- set role = 'model' -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else '') }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\\n' }}{%- endif -%}"""

QWEN25 = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] }}{% else %}\
{{- 'You are a helpful assistant.' }}{% endif %}
    {{- "\\n\\n# Tools\\n\\nYou may call one\
 or more functions.\\n\\nThe signatures are within <tools></tools>:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n\\nFor each call, write JSON within <tool_call></tool_call>.<|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first)\
 or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}{{- '\\n' + message.content }}{% endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}{% set tool_call = tool_call.function %}{% endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}\
{{- tool_call.arguments | tojson }}{{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{% endif %}
        {{- '\\n<tool_response>\\n' }}{{- message.content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{% endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""

QWEN3 = """\
{%- set ns = namespace(searching=true, last_query=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and message.content is string\
 and not (message.content.startswith('<tool_response>')\
 and message.content.endswith('</tool_response>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last_query = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}{% set content = message.content %}{% else %}{% set content = '' %}{% endif %}
    {%- if message.role == "user" or message.role == "system" %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n')\
 + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{% endif %}
                {%- set call = tool_call.function if tool_call.function else tool_call %}
                {{- '<tool_call>\\n{"name": "' ~ call.name ~ '", "arguments": ' }}
                {%- if call.arguments is string %}{{- call.arguments }}{% else %}{{- call.arguments | tojson }}{% endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {{- '<|im_start|>user\\n<tool_response>\\n' ~ content ~ '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}"""

PHI3 = """\
{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}\
{{ '<|system|>\\n' + message['content'] + '<|end|>\\n' }}{% elif message['role'] == 'user' %}\
{{ '<|user|>\\n' + message['content'] + '<|end|>\\n' }}{% elif message['role'] == 'assistant' %}\
{{ '<|assistant|>\\n' + message['content'] + '<|end|>\\n' }}{% endif %}{% endfor %}\
{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"""

PHI4_MINI = """\
{% for message in messages %}\
{% if message['role'] == 'system' and 'tools' in message and message['tools'] is not none %}\
{{ '<|' + message['role'] + '|>' + message['content'] + '<|tool|>' + message['tools'] + '<|/tool|>' + '<|end|>' }}\
{% else %}{{ '<|' + message['role'] + '|>' + (message['content'] or '') + '<|end|>' }}{% endif %}\
{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}"""

DEEPSEEK_R1 = """\
{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}
{%- set ns = namespace(is_first=false, is_tool=false, system_prompt='') %}
{%- for message in messages %}{% if message['role'] == 'system' %}\
{% set ns.system_prompt = message['content'] %}{% endif %}{% endfor %}
{{- bos_token }}{{ ns.system_prompt }}
{%- for message in messages %}
    {%- if message['role'] == 'user' %}
        {%- set ns.is_tool = false %}
        {{- '<｜User｜>' + message['content'] }}
    {%- endif %}
    {%- if message['role'] == 'assistant' and message['content'] is not defined %}
        {%- set ns.is_tool = false %}
        {%- for tool in message['tool_calls'] %}
            {%- if loop.first %}{{ '<｜Assistant｜><｜tool▁calls▁begin｜>' }}{% else %}{{ '\\n' }}{% endif %}
            {{- '<｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>' + tool['function']['name']\
 + '\\n```json\\n' + tool['function']['arguments'] | tojson + '\\n```<｜tool▁call▁end｜>' }}
        {%- endfor %}
        {{- '<｜tool▁calls▁end｜><｜end▁of▁sentence｜>' }}
    {%- endif %}
    {%- if message['role'] == 'assistant' and message['content'] is defined %}
        {%- if ns.is_tool %}
            {{- '<｜tool▁outputs▁end｜>' + message['content'] + '<｜end▁of▁sentence｜>' }}
            {%- set ns.is_tool = false %}
        {%- else %}
            {%- set content = message['content'] %}
            {%- if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}
            {{- '<｜Assistant｜>' + content + '<｜end▁of▁sentence｜>' }}
        {%- endif %}
    {%- endif %}
    {%- if message['role'] == 'tool' %}
        {{- '\\n' if ns.is_tool else '<｜tool▁outputs▁begin｜>' }}
        {%- set ns.is_tool = true %}
        {{- '<｜tool▁output▁begin｜>' + message['content'] + '<｜tool▁output▁end｜>' }}
    {%- endif %}
{%- endfor -%}
{% if ns.is_tool %}{{ '<｜tool▁outputs▁end｜>' }}{% endif %}
{%- if add_generation_prompt and not ns.is_tool %}{{ '<｜Assistant｜><think>\\n' }}{% endif %}"""

COMMAND_R = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}\
{% set system_message = messages[0]['content'] %}
{%- else %}{% set loop_messages = messages %}{% set system_message = 'You are Command-R.' %}{% endif %}
{{- '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' + system_message + '<|END_OF_TURN_TOKEN|>' }}
{%- for message in loop_messages %}
    {%- set content = message['content'] | default('') %}
    {%- if message['role'] == 'user' %}
        {{- '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}
    {%- elif message['role'] == 'assistant' %}
        {{- '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' + content.strip() + '<|END_OF_TURN_TOKEN|>' }}
    {%- endif %}
{%- endfor %}
{%- if documents %}
    {{- '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><results>' }}
    {%- for document in documents %}
        {{- '\\nDocument: ' }}{{ loop.index0 }}
        {%- for key, value in document.items() %}{{ '\\n' ~ key | title ~ ': ' ~ value }}{% endfor %}
    {%- endfor %}
    {{- '\\n</results><|END_OF_TURN_TOKEN|>' }}
{%- endif %}
{%- if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}"""

ZEPHYR = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

FALCON = """\
{% for message in messages %}{% if not loop.first %}{{ '\\n' }}{% endif %}\
{% if message['role'] == 'system' %}{{ 'System: ' + message['content'] | trim }}\
{% elif message['role'] == 'user' %}\
{{ 'User: ' + message['content'].replace('\\r\\n', '\\n').replace('\\n\\n', '\\n') | trim }}\
{% elif message['role'] == 'assistant' %}{{ 'Falcon: ' + message['content'] | trim + eos_token }}\
{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '\\nFalcon:' }}{% endif %}"""

OLMO = """\
{{ bos_token }}{% for message in messages %}
{% if message['role'] == 'system' %}
{{ '<|system|>\\n' + message['content'] + '\\n' }}
{%- elif message['role'] == 'user' %}
{{ '<|user|>\\n' + message['content'] + '\\n' }}
{%- elif message['role'] == 'assistant' %}
{{ '<|assistant|>\\n' }}{% generation %}{{ message['content'] + eos_token }}{% endgeneration %}\
{{ '' if loop.last else '\\n' }}
{%- endif %}
{% endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"""

HARMONY = """\
{%- macro type_of(spec) -%}
    {%- if spec.type == "array" -%}{{ type_of(spec['items']) if spec['items'] else "any" }}{{ "[]" }}
    {%- elif spec.type is defined and spec.type is iterable\
 and spec.type is not string -%}{{ spec.type | join(" | ") }}
    {%- elif spec.enum -%}{{ '"' + spec.enum | join('" | "') + '"' }}
    {%- elif spec.type in ["number", "integer"] -%}{{ "number" }}
    {%- else -%}{{ spec.type or "any" }}{%- endif -%}
{%- endmacro -%}
{%- macro functions(tools) -%}
    {{- "## functions\\n\\nnamespace functions {\\n\\n" }}
    {%- for tool in tools %}
        {%- set tool = tool.function %}
        {{- "// " + tool.description + "\\n" }}
        {%- if tool.parameters and tool.parameters.properties %}
            {{- "type " + tool.name + " = (_: {\\n" }}
            {%- for name, spec in tool.parameters.properties.items() %}
                {%- if spec.description %}{{- "// " + spec.description + "\\n" }}{% endif %}
                {{- name }}{{ "?" if name not in (tool.parameters.required or []) }}{{- ": "\
 + type_of(spec) + ",\\n" }}
            {%- endfor %}
            {{- "}) => any;\\n\\n" }}
        {%- else %}
            {{- "type " + tool.name + " = () => any;\\n\\n" }}
        {%- endif %}
    {%- endfor %}
    {{- "} // namespace functions" }}
{%- endmacro -%}
{%- macro system_message() -%}
    {{- "You are ChatGPT, a large language model.\\nKnowledge cutoff: 2024-06\\n" }}
    {{- "Reasoning: " + (reasoning_effort if reasoning_effort is defined else "medium")\
 + "\\n\\n# Valid channels: analysis, commentary, final." }}
{%- endmacro -%}
{{- "<|start|>system<|message|>" }}{{- system_message() }}{{- "<|end|>" }}
{%- if messages[0].role == "developer" or messages[0].role == "system" %}
    {%- set developer_message = messages[0].content %}{% set loop_messages = messages[1:] %}
{%- else %}
    {%- set developer_message = "" %}{% set loop_messages = messages %}
{%- endif %}
{%- if developer_message or tools %}
    {{- "<|start|>developer<|message|>" }}
    {%- if developer_message %}{{- "# Instructions\\n\\n" + developer_message + "\\n\\n" }}{% endif %}
    {%- if tools -%}{{- "# Tools\\n\\n" }}{{- functions(tools) }}{%- endif -%}
    {{- "<|end|>" }}
{%- endif %}
{%- set last_call = namespace(name=none) %}
{%- for message in loop_messages -%}
    {%- if message.role == 'assistant' and message.tool_calls %}
        {%- set call = message.tool_calls[0].function %}
        {%- if message.thinking %}\
{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}{% endif %}
        {{- "<|start|>assistant to=functions." + call.name + "<|channel|>commentary json<|message|>" }}\
{{- call.arguments | tojson }}{{- "<|call|>" }}
        {%- set last_call.name = call.name %}
    {%- elif message.role == 'assistant' %}
        {{- "<|start|>assistant<|channel|>final<|message|>" + message.content + ("<|return|>"\
 if loop.last and not add_generation_prompt else "<|end|>") }}
    {%- elif message.role == "tool" %}
        {{- "<|start|>functions." ~ last_call.name ~ " to=assistant<|channel|>commentary<|message|>"\
 ~ message.content | tojson ~ "<|end|>" }}
    {%- elif message.role == "user" %}
        {{- "<|start|>user<|message|>" + message.content + "<|end|>" }}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}{{- "<|start|>assistant" }}{% endif %}"""

VICUNA = """\
{% if messages[0]['role'] == 'system' %}{{ messages[0]['content'] + ' ' }}\
{% set loop_messages = messages[1:] %}{% else %}\
{{ 'A chat between a curious user and an artificial intelligence assistant. ' }}\
{% set loop_messages = messages %}{% endif %}{% for message in loop_messages %}\
{% if message['role'] == 'user' %}{{ 'USER: ' + message['content'] + ' ' }}\
{% elif message['role'] == 'assistant' %}{{ 'ASSISTANT: ' + message['content'] + eos_token }}{% endif %}\
{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"""

ALPACA = """\
{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}\
{{ messages[0]['content'].capitalize() + '\\n\\n' }}{% else %}{% set loop_messages = messages %}\
{% endif %}{% for message in loop_messages %}{% if message['role'] == 'user' %}\
{{ '### Instruction:\\n' + message['content'].strip() | indent(2) + '\\n\\n' }}\
{% elif message['role'] == 'assistant' %}\
{{ '### Response:\\n' + message['content'].strip() + eos_token + '\\n\\n' }}{% endif %}{% endfor %}\
{% if add_generation_prompt %}{{ '### Response:\\n' }}{% endif %}"""

_IM = ["<|im_start|>", "<|im_end|>"]
_ROLES = ["<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|/tool|>", "<|end|>"]
# name → the source, the special tokens that it writes (bos and eos last), and added tokens that are not special
TEMPLATES = {
    "chatml": (CHATML, [*_IM, "<s>", "</s>"], []),
    "llama-2": (LLAMA2, ["<s>", "</s>"], []),
    "llama-3.1": (
        LLAMA3,
        ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|begin_of_text|>", "<|end_of_text|>"],
        [],
    ),
    "mistral": (
        MISTRAL,
        ["[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]"]
        + ["[/TOOL_RESULTS]", "<s>", "</s>"],
        [],
    ),
    "gemma": (GEMMA, ["<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<bos>", "<eos>"], ["\n\n"]),
    "qwen2.5": (
        QWEN25,
        [*_IM, "<|endoftext|>"],
        ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"],
    ),
    "qwen3": (
        QWEN3,
        [*_IM, "<|endoftext|>"],
        ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>"],
    ),
    "phi-3": (PHI3, [*_ROLES, "<s>", "<|endoftext|>"], []),
    "phi-4-mini": (PHI4_MINI, [*_ROLES, "<|endoftext|>"], []),
    "deepseek-r1": (
        DEEPSEEK_R1,
        [
            "<｜User｜>",
            "<｜Assistant｜>",
            "<｜tool▁calls▁begin｜>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
        ]
        + [
            "<｜tool▁call▁end｜>",
            "<｜tool▁outputs▁begin｜>",
            "<｜tool▁outputs▁end｜>",
            "<｜tool▁output▁begin｜>",
        ]
        + ["<｜tool▁output▁end｜>", "<｜tool▁sep｜>", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
        ["<think>", "</think>"],
    ),
    "command-r": (
        COMMAND_R,
        ["<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>"]
        + ["<|CHATBOT_TOKEN|>", "<BOS_TOKEN>", "<EOS_TOKEN>"],
        [],
    ),
    "zephyr": (ZEPHYR, ["<|user|>", "<|system|>", "<|assistant|>", "<s>", "</s>"], []),
    "falcon": (FALCON, ["<|endoftext|>"], []),
    "olmo": (OLMO, ["<|user|>", "<|system|>", "<|assistant|>", "<|endoftext|>"], []),
    "harmony": (
        HARMONY,
        ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|call|>", "<|return|>", "<|endoftext|>"],
        [],
    ),
    "vicuna": (VICUNA, ["<s>", "</s>"], []),
    "alpaca": (ALPACA, ["<s>", "</s>"], []),
}

WORDS = [
    "hello ",
    " World",
    "\n",
    "  ",
    "naïve",
    "漢字",
    "🙂",
    "it's",
    "12",
    "{'a': 1}",
    "</x>",
    "<",
    "|",
    "a\r\nb",
    "ﬁß",
    '"q"',
]


def named(special) -> dict:
    "The bos and eos tokens of a template: the last two of its special tokens, or the last one for both."
    return {"bos_token": special[-2:][0], "eos_token": special[-1]}


def text_of(rng, words) -> str:
    return "".join(rng.choices(words, k=rng.randrange(7)))


def tools_of(rng, words) -> list:
    "Schemas of functions."

    def schema():
        names = rng.sample(["city", "unit", "day"], rng.randrange(4))
        specs = [
            {"type": "string", "description": text_of(rng, words)},
            {"type": "array", "items": {"type": "integer"}},
            {"type": ["string", "null"]},
            {"enum": ["a", text_of(rng, words)]},
        ]
        parameters = {
            "type": "object",
            "properties": {n: rng.choice(specs) for n in names},
            "required": names[:1],
        }
        return {
            "name": rng.choice(["weather", "f"]),
            "description": text_of(rng, words),
            "parameters": parameters,
        }

    return [{"type": "function", "function": schema()} for _ in range(rng.randint(1, 2))]


def conversation(rng, words) -> list:
    "A conversation: a system message perhaps, turns, tool calls and results."
    messages = []
    if rng.random() < 0.5:
        messages.append(
            {"role": rng.choice(["system", "system", "developer"]), "content": text_of(rng, words)}
        )
    for _ in range(rng.randint(1, 3)):
        messages.append({"role": "user", "content": text_of(rng, words)})
        if rng.random() < 0.3:
            arguments = {"city": text_of(rng, words), "n": rng.choice([1, 2.5, None, True])}
            call = {
                "type": "function",
                "id": "abcdef123",
                "function": {"name": "weather", "arguments": arguments},
            }
            messages.append(
                {
                    "role": "assistant",
                    "tool_calls": [call],
                    "reasoning": rng.choice([None, text_of(rng, words)]),
                }
            )
            messages.append(
                {
                    "role": "tool",
                    "content": text_of(rng, words),
                    "tool_call_id": "abcdef123",
                    "name": "weather",
                }
            )
        if rng.random() < 0.8:
            messages.append({"role": "assistant", "content": text_of(rng, words)})
    return messages


def options_of(rng, words) -> dict:
    options = {"add_generation_prompt": rng.random() < 0.4}
    if not options["add_generation_prompt"] and rng.random() < 0.3:
        options["continue_final_message"] = True
    if rng.random() < 0.3:
        options["tools"] = tools_of(rng, words)
    if rng.random() < 0.2:
        options["documents"] = [{"title": text_of(rng, words), "text": text_of(rng, words)} for _ in range(2)]
    if rng.random() < 0.3:
        options["enable_thinking"] = False
    return options
